//! Sessions over captured hosts, one of which cannot be read at times.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers panic as the test does")]

use std::time::Duration;
use untax_core::host::HostFacts;
use untax_core::{Calibration, Reading};
use untax_host::{Host, Record};
use untax_pipeline::{Calibrating, Observed, Options, PageCosts, PipelineError, Session, Target};

/// A caller that keeps no calibration, and must not be asked to measure one.
struct NoCosts;

impl PageCosts for NoCosts {
    fn kept(&self) -> Option<Calibration> {
        None
    }

    fn measure(&self, _: &HostFacts) -> Reading<Calibration> {
        panic!("measured, though no database needs it");
    }

    fn keep(&self, _: &Calibration) -> Result<(), String> {
        Ok(())
    }
}

/// A host on which one process runs, this long after its boot.
fn host(uptime_s: f64) -> Host {
    let stat = "1 (init) S 0 1 1 0 -1 4194304 1000 200 3 4 150 50 300 200 20 0 1 0 10 0 0";
    let taken_at = format!("2026-01-01T00:00:{uptime_s:02}Z");
    let record = Record::default()
        .with_file("/proc/uptime", &format!("{uptime_s} 1.0\n"))
        .with_file("/proc/1/stat", stat)
        .with_answer("taken_at", &Reading::Present(taken_at));
    Host::from_record(record)
}

/// A host of which nothing can be read.
fn unreadable() -> Host {
    Host::from_record(Record::default())
}

fn options(target: Target) -> Options {
    Options { target, window: Duration::ZERO, calibrating: Calibrating::Measure }
}

fn length(observed: &Observed) -> Duration {
    Duration::from_secs_f64(observed.window.seconds())
}

fn session() -> Session<'static> {
    Session::open(options(Target::All), &NoCosts, &host(1.0)).unwrap()
}

#[test]
fn windows_follow_each_other_without_a_hole() {
    let mut session = session();
    let lengths = [4.0, 9.0].map(|until| length(&session.next(&host(until)).unwrap()));
    assert_eq!(lengths, [3, 5].map(Duration::from_secs));
}

#[test]
fn one_failed_snapshot_is_a_gap_of_one_window() {
    let mut session = session();
    session.next(&host(4.0)).unwrap();
    assert!(session.next(&unreadable()).is_err());
    // No snapshot opened this window either; the one that ends it opens the next.
    assert!(matches!(session.next(&host(9.0)), Err(PipelineError::NoStart(_))));
    let observed = session.next(&host(15.0)).unwrap();
    assert_eq!(length(&observed), Duration::from_secs(6));
}

#[test]
fn a_session_does_not_open_on_a_host_that_cannot_be_read() {
    let opened = Session::open(options(Target::All), &NoCosts, &unreadable());
    assert!(opened.is_err());
}

#[test]
fn a_process_that_is_not_there_is_named_in_the_error() {
    let opened = Session::open(options(Target::Pid(77)), &NoCosts, &host(1.0));
    let error = opened.err().unwrap();
    assert!(matches!(error, PipelineError::NothingToCheck(_)), "{error}");
    assert!(error.to_string().contains("77"), "{error}");
}
