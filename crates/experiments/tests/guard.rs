//! The guard as a real process, over a directory that looks like the kernel's.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which end by panicking")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use untax_core::Bytes;
use untax_experiments::Program;
use untax_experiments::pools::{BenchLock, Guard, Journal, Pool, Tree, recover};

const POOL: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";

fn program() -> Program {
    Program::at(env!("CARGO_BIN_EXE_untax-experiments").into())
}

/// A machine with a pool of seven pages, and a state directory.
fn machine() -> (tempfile::TempDir, Tree, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let pool = root.path().join(POOL);
    fs::create_dir_all(&pool).unwrap();
    for (file, value) in [("nr", "7"), ("free", "7"), ("resv", "0"), ("surplus", "0")] {
        fs::write(pool.join(format!("{file}_hugepages")), value).unwrap();
    }
    let (tree, state) = (Tree::at(root.path()), root.path().join("state"));
    (root, tree, state)
}

fn change(root: &Path) {
    fs::write(root.join(POOL).join("nr_hugepages"), "500").unwrap();
}

fn pages(tree: &Tree) -> u64 {
    tree.number(&format!("/{POOL}/nr_hugepages")).unwrap()
}

fn post(tree: &Tree, state: &Path, lock: &BenchLock) -> Guard {
    let settings = Pool::find(tree, Bytes::MIB_2).unwrap().settings(tree).unwrap();
    Guard::post(&program(), state, lock, tree, settings).unwrap()
}

#[test]
fn prior_values_are_on_disk_before_anything_changes() {
    let (_root, tree, state) = machine();
    let lock = BenchLock::take(&state).unwrap();
    let guard = post(&tree, &state, &lock);
    let saved = Journal::load(&Journal::path(&state)).unwrap().unwrap();
    assert_eq!(&saved, guard.journal());
    assert_eq!(saved.settings()[0].prior(), "7");
}

#[test]
fn releasing_and_dropping_both_restore() {
    let (root, tree, state) = machine();
    let lock = BenchLock::take(&state).unwrap();
    let guard = post(&tree, &state, &lock);
    change(root.path());
    guard.release().unwrap();
    assert_eq!(pages(&tree), 7);
    let guard = post(&tree, &state, &lock);
    change(root.path());
    drop(guard);
    assert_eq!(pages(&tree), 7);
    assert!(!Journal::path(&state).exists());
}

#[test]
fn a_killed_guard_is_replaced_by_the_bench() {
    let (root, tree, state) = machine();
    let lock = BenchLock::take(&state).unwrap();
    let guard = post(&tree, &state, &lock);
    change(root.path());
    kill(guard.pid());
    guard.release().unwrap();
    assert_eq!(pages(&tree), 7);
    assert!(!Journal::path(&state).exists());
}

#[test]
fn the_next_bench_restores_what_both_left_behind() {
    let (root, tree, state) = machine();
    let lock = BenchLock::take(&state).unwrap();
    let settings = Pool::find(&tree, Bytes::MIB_2).unwrap().settings(&tree).unwrap();
    Journal::new(&tree, settings).save(&state).unwrap();
    change(root.path());
    let restored = recover(&lock, &state).unwrap();
    assert_eq!(restored.len(), 1);
    assert_eq!(pages(&tree), 7);
    assert!(recover(&lock, &state).unwrap().is_empty());
}

#[test]
fn a_guard_that_does_not_start_leaves_no_journal() {
    let (_root, tree, state) = machine();
    let lock = BenchLock::take(&state).unwrap();
    let settings = Pool::find(&tree, Bytes::MIB_2).unwrap().settings(&tree).unwrap();
    let program = Program::at("/bin/false".into());
    assert!(Guard::post(&program, &state, &lock, &tree, settings).is_err());
    assert!(!Journal::path(&state).exists());
}

/// The guard ignores the signals that end the bench, holds the lock as long as it works, and
/// gives up neither.
#[test]
fn polite_signals_do_not_end_the_guard() {
    let (root, tree, state) = machine();
    let lock = BenchLock::take(&state).unwrap();
    let guard = post(&tree, &state, &lock);
    change(root.path());
    for signal in ["-TERM", "-INT", "-HUP"] {
        signal_to(guard.pid(), signal);
    }
    drop(lock);
    assert!(BenchLock::take(&state).is_err(), "the guard holds the lock");
    guard.release().unwrap();
    assert_eq!(pages(&tree), 7);
    assert!(BenchLock::take(&state).is_ok());
}

fn kill(pid: u32) {
    signal_to(pid, "-KILL");
}

fn signal_to(pid: u32, signal: &str) {
    let kill = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(kill.success());
}

/// A child that is not started by a bench that lives must not work on.
#[test]
fn children_of_a_dead_bench_end_at_once() -> io::Result<()> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_untax-experiments"))
        .args(["__read-pages", "1", "{}"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait()?.code(), Some(2));
    Ok(())
}
