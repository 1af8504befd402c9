//! Small benches on this very machine: real children, real pages, real pools.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which end by panicking")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use untax_changes::{Lock, Pool, Program, Receipt, Tree, target, temporary};
use untax_core::plan::Target;
use untax_core::{Bytes, Reading};
use untax_experiments::pages::{
    self, Access, BenchError, Model, Page, PagesBench, Refusal, Request, transparent,
};
use untax_experiments::{Bench, Machine, Nobody, Observer, Progress, calibrate};
use untax_scenes::Turn;
use untax_trials::Interrupt;

/// Pools belong to the whole machine: whoever changes them does so when it is their turn.
fn alone() -> Turn {
    Turn::wait().unwrap()
}

fn program() -> Program {
    Program::at(env!("CARGO_BIN_EXE_untax-experiments").into())
}

fn machine() -> Machine {
    let of_the_test = || "the test's".to_owned();
    Machine { cpu_model: of_the_test(), kernel_release: of_the_test(), idle: of_the_test() }
}

fn request(pages: &[Page]) -> Request {
    Request {
        rows: Some(40_000),
        most_table: Bytes::GIB_1,
        row_bytes: vec![100],
        pages: pages.to_vec(),
        connections: vec![1, 3],
        model: Model::Process,
        access: Access::Direct,
        trials: 1,
        trial: Duration::from_millis(100),
        seed: 11,
    }
}

/// Runs a bench with a state directory of its own.
fn bench(
    request: &Request,
    interrupt: Interrupt,
    observer: &mut dyn Observer<PagesBench>,
) -> Result<PagesBench, BenchError> {
    let state = tempfile::tempdir().unwrap();
    let bench = Bench {
        program: &program(),
        tree: &Tree::live(),
        state: state.path(),
        lock: &Lock::to_bench(state.path()).unwrap(),
        machine: &machine(),
        cgroup: None,
        run: "test",
        calibration: None,
        interrupt,
    };
    let result = pages::run(request, &bench, observer);
    assert_eq!(Receipt::all(&temporary::folder(state.path())).0, []);
    result
}

/// All that a bench may change, as it is.
fn settings() -> Vec<(Target, Option<String>)> {
    let tree = Tree::live();
    let mut all = transparent::changes(&tree).unwrap_or_default();
    let pools = [Page::Huge, Page::Gigantic].map(|page| Pool::find(&tree, page.bytes()));
    all.extend(pools.iter().flatten().flat_map(Pool::targets));
    let value = |target: Target| (target.clone(), target::read(&tree, &target).unwrap());
    all.into_iter().map(value).collect()
}

fn every_cell_was_read(bench: &PagesBench, pages: &[&str]) {
    for page in pages {
        for connections in [1, 3] {
            let cell = bench.cells.iter().find(|c| c.page == *page && c.connections == connections);
            let cell = cell.unwrap_or_else(|| panic!("{page} {connections}: {:?}", bench.warnings));
            assert!(cell.reads_per_s.median > 0.0, "{cell:?}");
            assert!(cell.page_table_bytes.0 > 0, "{cell:?}");
        }
    }
}

#[test]
fn processes_and_threads_read_small_pages() {
    for (model, access) in [
        (Model::Process, Access::Direct),
        (Model::Thread, Access::Hash),
        (Model::Process, Access::Hash),
    ] {
        let request = Request { model, access, ..request(&[Page::Small]) };
        let bench = bench(&request, Interrupt::default(), &mut Nobody).unwrap();
        assert!(bench.complete);
        every_cell_was_read(&bench, &["4k"]);
        assert!(bench.ratios.is_empty());
    }
}

#[test]
fn each_process_has_page_tables_and_threads_share_them() {
    let tables = |model| {
        let request = Request { model, ..request(&[Page::Small]) };
        let bench = bench(&request, Interrupt::default(), &mut Nobody).unwrap();
        let of = |n| bench.cells.iter().find(|c| c.connections == n).unwrap().page_table_bytes.0;
        (of(1), of(3))
    };
    let (one, three) = tables(Model::Process);
    assert!(three > 2 * one, "{one} {three}");
    let (one, three) = tables(Model::Thread);
    assert_eq!(one, three);
}

#[test]
fn large_pages_are_got_used_and_given_back() {
    let _alone = alone();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let before = settings();
    let request = Request { trials: 2, ..request(&[Page::Small, Page::Huge, Page::Transparent]) };
    let bench = bench(&request, Interrupt::default(), &mut Nobody).unwrap();
    assert_eq!(settings(), before);
    every_cell_was_read(&bench, &["4k", "2m", "thp"]);
    let tables = |page: &str| {
        let cell = bench.cells.iter().find(|c| c.page == page && c.connections == 3);
        cell.unwrap().page_table_bytes
    };
    assert!(tables("2m") < tables("4k"), "{:?} {:?}", tables("2m"), tables("4k"));
    // What else runs here may tear two trials of a cell apart, which is then told.
    let is_whole = !bench.warnings.iter().any(|warning| warning.id == "cells-apart");
    assert!(bench.ratios.len() == 4 || !is_whole, "{:?}", bench.warnings);
    assert!(bench.noise.ratios.len() == 2 || !is_whole, "{:?}", bench.noise);
    assert!(!bench.warnings.iter().any(|w| w.id == "page-left-out"), "{:?}", bench.warnings);
}

/// Raises the interrupt after the first trial.
struct Stopper(Interrupt, usize);

impl Observer<PagesBench> for Stopper {
    fn progress(&mut self, _: &Progress) {}
    fn partial(&mut self, _: &PagesBench) {
        self.1 += 1;
        self.0.raise();
    }
}

#[test]
fn an_interrupted_bench_gives_what_it_has_and_restores() {
    let _alone = alone();
    let root = rustix::process::geteuid().is_root();
    let pages: &[Page] = if root { &[Page::Small, Page::Huge] } else { &[Page::Small] };
    let before = settings();
    let interrupt = Interrupt::default();
    let mut stopper = Stopper(interrupt.clone(), 0);
    let bench = bench(&request(pages), interrupt, &mut stopper).unwrap();
    assert_eq!(settings(), before);
    assert!(!bench.complete);
    assert_eq!(stopper.1, 1);
    assert!(bench.cells.len() <= 1);
}

/// Ends the bench with a panic.
struct Panicking;

impl Observer<PagesBench> for Panicking {
    fn progress(&mut self, _: &Progress) {}
    fn partial(&mut self, _: &PagesBench) {
        panic!("on purpose");
    }
}

#[test]
fn a_panicking_bench_restores() {
    let _alone = alone();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let before = settings();
    let ended = std::panic::catch_unwind(|| {
        bench(&request(&[Page::Small, Page::Huge]), Interrupt::default(), &mut Panicking)
    });
    assert!(ended.is_err());
    assert_eq!(settings(), before);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_changes() {
    let _alone = alone();
    let before = settings();
    let request = Request { rows: Some(1 << 39), ..request(&[Page::Small]) };
    let refused = bench(&request, Interrupt::default(), &mut Nobody);
    assert!(matches!(refused, Err(BenchError::Refused(Refusal::TooLarge { .. }))), "{refused:?}");
    assert_eq!(settings(), before);
}

#[test]
fn two_benches_at_once_are_refused() {
    let state = tempfile::tempdir().unwrap();
    let first = Lock::to_bench(state.path()).unwrap();
    let second = Lock::to_bench(state.path()).unwrap_err().to_string();
    assert!(second.contains(&format!("pid {}", std::process::id())), "{second}");
    drop(first);
    assert!(Lock::to_bench(state.path()).is_ok());
}

#[test]
fn a_calibration_tells_what_faults_and_touches_cost() {
    let budget = calibrate::QUICK;
    let Reading::Present(calibration) = calibrate(&program(), budget, &machine()) else {
        panic!("every machine of 4 KiB pages can count its faults");
    };
    assert!(calibration.minor_fault_ns.low > 0.0, "{calibration:?}");
    assert!(calibration.minor_fault_ns.low <= calibration.minor_fault_ns.high);
    assert_eq!(calibration.touches.is_empty(), calibration.touches_missing.is_some());
    assert!(calibration.touches.is_sorted_by_key(|touch| touch.working_set_bytes));
}

#[test]
fn a_program_that_cannot_calibrate_is_a_failure_and_not_a_number() {
    let program = Program::at("/bin/false".into());
    let reading = calibrate(&program, calibrate::QUICK, &machine());
    assert!(matches!(reading, Reading::Failed(_)), "{reading:?}");
}

/// A child that is not started by a bench that lives must not work on.
#[test]
fn children_of_a_dead_bench_end_at_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_untax-experiments"))
        .args(["__read-pages", "1", "{}"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
