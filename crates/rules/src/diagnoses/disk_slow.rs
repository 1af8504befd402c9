//! `disk-slow`: the database waits for a device that takes longer than an ordinary one.

use crate::evidence;
use crate::model::disk_charges::Charged;
use crate::model::disk_charges::ORDINARY_S;
use crate::model::disk_limit;
use crate::model::disk_requests;
use crate::model::stall::{self, WORTH, Words, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::database::{IoLimit, Limited};
use untax_core::io::Behind;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Io, Reading, Seconds, Window};

pub const RULE: Rule = Rule {
    id: "disk-slow",
    summary: "the database waits for its disk longer than an ordinary flash disk would take",
    what: "A commit waits until the log is on the disk. A query waits until a page that is not \
           cached was read. A local flash disk takes 0.02 to 0.5 ms for such a write or read. \
           Turning disks, overcommitted storage and emulated devices take many times that.",
    method: "The tax is the traced time that threads waited for block devices beyond 0.5 ms for \
             each request, as a share of active time.",
    measured: "The rule traces time in uninterruptible waits for block devices as a share of \
               active time. The rule charges the part above 0.5 ms for each of the database's own \
               requests. The file of a request's pages shows the owner of the request. Time in the \
               queue, in flushes and at I/O limits is included. A futex wait counts while another \
               thread that serves a client waits for what it writes: a thread that queues for the \
               log waits for the disk. PostgreSQL's processes that write in the background are \
               left out, because nobody waits for them. Waits for temporary files, full page \
               images, evicted pages, networks and neighbours are charged by their own rules. \
               Waits within 0.5 ms are no tax: any disk takes them. Where the database reached \
               four fifths of a control group's limit on requests, the gain is 2000 requests a \
               second divided by that limit, as far as the rest allows.",
    fix: "Raise a limit on its requests (io.max, blkio.throttle) where there is one. Put the log, \
          then the data, on local flash with power-loss protection, with the scheduler none or \
          mq-deadline. Where the disk cannot change, let several transactions share a flush \
          (commit_delay, binlog_group_commit_sync_delay).",
    sources: &[
        "kernel.org: block/stat, admin-guide/iostats; trace/events/block",
        "data sheets: Intel P4510 read 77 us, write 18 us; S4510 99.9 % within 0.2 to 2 ms",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "about a microsecond for each block request, and part of the tracing of threads",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        let stall = disk_requests::disk_stall(window, pair);
        stall.and_then(|stall| {
            let Some(mut stall) = stall.filter(|stall| stall.share.mid >= WORTH) else {
                return Reading::Present(None);
            };
            Charged::of(window, pair).map(|charged| {
                let waited = stall.share.mid;
                stall.share = stall.share.times(charged.device);
                let io = window.io.value()?;
                let limit = reached_limit(window, pair);
                if let Some(limit) = limit {
                    let factor = room(io, limit);
                    stall = stall.with_limit(factor, disk_limit::waiting(window, pair));
                }
                (stall.share.mid >= WORTH).then(|| {
                    let words = words(io, pair, waited, &charged);
                    let words = match limit {
                        Some(limit) => words_of_limit(words, limit, waited),
                        None => words,
                    };
                    stall::finding(RULE.id, &stall, words)
                })
            })
        })
    })
}

/// By what factor requests may grow without a limit: until its device is never idle, and at least to what an ordinary
/// disk does one by one.
fn room(io: &Io, limit: &IoLimit) -> f64 {
    let device = io.devices.iter().find(|device| device.number == limit.device);
    let counted = device.and_then(|device| device.counted.value());
    let unused = counted.filter(|counted| counted.busy > 0.0).map_or(1.0, |c| 1.0 / c.busy);
    unused.max(1.0 / (ORDINARY_S * limit.per_s as f64))
}

/// The limit on requests that the database reached, if it is lower than what an ordinary disk does
/// one by one.
fn reached_limit<'a>(window: &Window, pair: &'a Pair) -> Option<&'a IoLimit> {
    let reached = [Limited::Reads, Limited::Writes]
        .into_iter()
        .filter_map(|what| disk_limit::reached_limit(window, pair, what));
    let slow = reached.filter(|limit| ORDINARY_S * (limit.per_s as f64) < 1.0);
    slow.min_by_key(|limit| limit.per_s)
}

fn words(io: &Io, pair: &Pair, waited: f64, charged: &Charged) -> Words {
    let names = disk_requests::devices_of(io, &pair.end.id);
    let mut evidence = disk_requests::evidence(io, &pair.end.id);
    evidence.push(Evidence::new(&evidence::DISK_WAIT, waited, "scheduler's events"));
    evidence.extend(names.iter().filter_map(|name| io.device(name)).flat_map(|device| {
        let busy = device.counted.value().map(|counted| {
            Evidence::new(&evidence::DEVICE_BUSY, counted.busy, "/proc/diskstats").of(&device.name)
        });
        let kind = match &device.behind {
            Behind::Local if device.rotational.value() == Some(&true) => "turning, as it says",
            Behind::Local => "local",
            Behind::Loop => "a file behind a loop device",
            Behind::Mapped => "made of other devices",
            Behind::Copied => "made of other devices, encrypted or with parity",
            Behind::Network(what) => what,
            Behind::Memory => "memory",
        };
        let source = format!("/sys/block/{}", device.name);
        let kind = Evidence::new(&evidence::DEVICE_KIND, kind, source).of(&device.name);
        busy.into_iter().chain([kind])
    }));
    Words {
        summary: format!(
            "{} of its time waiting for {}: {} for a request, {} is ordinary",
            percent(waited),
            names.join(" and "),
            Seconds(charged.request_s),
            Seconds(ORDINARY_S)
        ),
        fix: "move the log, then the data, to local flash; until then let commits share a flush"
            .to_owned(),
        evidence,
        method: "time waiting for block devices, traced, x part above 0.5 ms for each of its \
                 requests, divided by active time"
            .to_owned(),
        remedy: None,
    }
}

/// The same where not the disk is slow, but a limit on requests.
fn words_of_limit(words: Words, limit: &IoLimit, waited: f64) -> Words {
    let limited = match limit.what {
        Limited::Reads => "reads",
        Limited::Writes => "writes",
        Limited::ReadBytes => "bytes read",
        Limited::WrittenBytes => "bytes written",
    };
    let (waited, per_s) = (percent(waited), limit.per_s);
    Words {
        summary: format!(
            "{waited} of its time held back by the limit of {per_s} {limited} a second"
        ),
        fix: format!("raise or remove that limit of the group {} (io.max)", limit.cgroup),
        evidence: words.evidence.into_iter().chain([disk_limit::evidence(limit)]).collect(),
        ..words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found};
    use untax_core::activity::{Doing, Polling};
    use untax_core::io::{Direction, Role};

    fn window(mean_s: f64) -> Window {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 4.0), (Doing::Disk, 6.0)]);
        window.io = io(vec![flow(Some("postgres:7"), Role::Log, Direction::Write, 900, mean_s)]);
        window
    }

    #[test]
    fn what_is_above_the_ordinary_is_charged() {
        let mut window = window(0.005);
        let findings = found(evaluate(&window));
        assert!((findings[0].tax.as_ref().unwrap().share - (0.6 - 0.45 / 10.0)).abs() < 1e-9);
        assert!(findings[0].gain.is_some());
        window.io =
            io(vec![flow(Some("postgres:7"), Role::Log, Direction::Write, 20_000, 0.000_2)]);
        assert!(found(evaluate(&window)).is_empty(), "an ordinary disk");
    }

    #[test]
    fn a_limit_of_requests_says_what_a_faster_disk_brings() {
        let mut window = window(0.005);
        let gain = |window: &Window| found(evaluate(window))[0].gain.unwrap();
        let waiting = gain(&window).factor;
        let mut limited = |limit: IoLimit| {
            test_window::limit_io(&mut window, limit);
            gain(&window)
        };
        let limit = |per_s| test_window::io_limit(Limited::Writes, per_s);
        // 90 of 100 allowed: 2000 would be ordinary, but then 60 % of its time is not all.
        assert!((limited(limit(100)).factor - 2.5).abs() < 1e-9);
        assert!((limited(limit(1000)).factor - waiting).abs() < 1e-9, "far from it");
        let other = IoLimit { device: "254:16".to_owned(), ..limit(100) };
        assert!((limited(other).factor - waiting).abs() < 1e-9, "another device");
    }

    #[test]
    fn a_limit_that_is_reached_is_what_to_change() {
        let mut window = window(0.005);
        test_window::limit_io(&mut window, test_window::io_limit(Limited::Writes, 100));
        let found = found(evaluate(&window)).remove(0);
        assert!(found.summary.contains("held back by the limit of 100 writes a second"));
        assert!(
            found.fix.starts_with("raise or remove that limit of the group /"),
            "{}",
            found.fix
        );
    }

    #[test]
    fn nobody_waits_for_what_is_written_in_the_background() {
        let mut window = window(0.005);
        let Reading::Present(activities) = &mut window.activity else { unreachable!() };
        for spent in activities[0].slices[0].spent.iter_mut().filter(|s| s.doing == Doing::Disk) {
            spent.polling = Polling::Timed;
        }
        assert!(found(evaluate(&window)).is_empty());
    }

    #[test]
    fn without_tracing_it_is_said() {
        let mut blind = window(0.005);
        blind.io = Reading::Denied("root".to_owned());
        assert_eq!(evaluate(&blind).len(), 1);
        assert!(found(evaluate(&blind)).is_empty());
    }
}
