//! The guard as a real process, over a directory that looks like the kernel's.
//!
//! The guard is this very program, so that it runs the tests one after the other by itself.

#![expect(clippy::unwrap_used, reason = "a test, which ends by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use untax_changes::guard::{self, Duty};
use untax_changes::receipt::Holding;
use untax_changes::temporary::folder;
use untax_changes::{Guard, Lock, Program, Receipt, Temporary, Tree, recover};
use untax_core::plan::Target;
use untax_core::receipt::{Record, Status};

const POOL: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";
const WORD: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

fn main() -> ExitCode {
    if let Some(code) = guard::main(std::env::args_os()) {
        return code;
    }
    if let [_, root, state] = &std::env::args().collect::<Vec<_>>()[..]
        && !root.starts_with('-')
    {
        change_and_die(Path::new(root), Path::new(state));
    }
    prior_values_are_on_disk_before_anything_changes();
    releasing_and_dropping_both_restore();
    pages_in_use_are_given_back_once_their_server_ends();
    what_is_put_back_may_be_changed_again();
    a_killed_guard_is_replaced_by_the_bench();
    a_killed_bench_is_restored_by_the_guard();
    the_next_bench_restores_what_both_left_behind();
    values_of_another_boot_do_not_count();
    a_guard_that_does_not_start_leaves_no_receipt();
    polite_signals_do_not_end_the_guard();
    a_guard_acts_on_the_last_word_that_it_heard();
    ExitCode::SUCCESS
}

/// A machine with a pool of seven pages and a word, and a state directory.
fn machine() -> (tempfile::TempDir, Tree, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let pool = root.path().join(POOL);
    fs::create_dir_all(&pool).unwrap();
    for (file, value) in [("nr", "7"), ("free", "7"), ("resv", "0"), ("surplus", "0")] {
        fs::write(pool.join(format!("{file}_hugepages")), value).unwrap();
    }
    let (tree, state) = (Tree::at(root.path()), root.path().join("state"));
    tree.replace(WORD, "always [madvise] never").unwrap();
    (root, tree, state)
}

fn pool() -> Target {
    Target::Pool { directory: format!("/{POOL}") }
}

fn word() -> Target {
    Target::Word { file: WORD.to_owned() }
}

fn change(tree: &Tree) {
    tree.write(&format!("/{POOL}/nr_hugepages"), "500").unwrap();
    tree.write(WORD, "always").unwrap();
}

fn assert_restored(tree: &Tree) {
    assert_eq!(tree.number(&format!("/{POOL}/nr_hugepages")).unwrap(), 7);
    assert_eq!(tree.word(WORD).unwrap(), "madvise");
}

fn begin(tree: &Tree, state: &Path, lock: &Lock) -> Temporary {
    let mut changes =
        Temporary::begin(&Program::this(), &folder(state), Some(lock), tree, "a-run").unwrap();
    for target in [pool(), word()] {
        changes.hold(&target).unwrap();
    }
    changes
}

fn receipts(state: &Path) -> Vec<Receipt> {
    let (receipts, damaged) = Receipt::all(&folder(state));
    assert!(damaged.is_empty(), "{damaged:?}");
    receipts
}

/// What a bench and a guard leave that are both killed before they could put anything back.
fn leave_behind(tree: &Tree, state: &Path, boot: Option<&str>) {
    let lock = Lock::to_bench(state).unwrap();
    let changes = begin(tree, state, &lock);
    let receipt = receipts(state).remove(0);
    let held: Vec<Record> = receipt.holdings().iter().map(|held| record(held, boot)).collect();
    drop(changes);
    let mut again = Receipt::begin(&folder(state), receipt.header().clone()).unwrap();
    for record in held {
        again.add(record).unwrap();
    }
    change(tree);
}

fn record(held: &Holding, boot: Option<&str>) -> Record {
    Record::Holding {
        target: held.target.clone(),
        prior: held.prior.map(str::to_owned),
        surplus: held.surplus,
        boot: boot.unwrap_or(held.boot).to_owned(),
    }
}

fn prior_values_are_on_disk_before_anything_changes() {
    let (_root, tree, state) = machine();
    let lock = Lock::to_bench(&state).unwrap();
    let mut changes = begin(&tree, &state, &lock);
    change(&tree);
    // The first value counts.
    changes.hold(&pool()).unwrap();
    let saved = receipts(&state);
    assert_eq!(saved.len(), 1);
    assert_eq!(saved[0].status(), Status::Interrupted);
    let held = saved[0].holdings();
    assert_eq!((held[0].target, held[0].prior), (&pool(), Some("7")));
    assert_eq!((held[1].target, held[1].prior), (&word(), Some("madvise")));
    assert_eq!(held.len(), 2);
}

fn releasing_and_dropping_both_restore() {
    let (_root, tree, state) = machine();
    let lock = Lock::to_bench(&state).unwrap();
    let changes = begin(&tree, &state, &lock);
    change(&tree);
    changes.release().unwrap();
    assert_restored(&tree);
    let changes = begin(&tree, &state, &lock);
    change(&tree);
    drop(changes);
    assert_restored(&tree);
    assert!(receipts(&state).is_empty());
}

fn pages_in_use_are_given_back_once_their_server_ends() {
    let (root, tree, state) = machine();
    let lock = Lock::to_bench(&state).unwrap();
    let changes = begin(&tree, &state, &lock);
    change(&tree);
    let surplus = root.path().join(POOL).join("surplus_hugepages");
    fs::write(&surplus, "3").unwrap();
    drop(changes);
    assert_eq!(receipts(&state).len(), 1, "the guard still has to give pages back");
    fs::write(&surplus, "0").unwrap();
    let ended = Instant::now();
    while !receipts(&state).is_empty() {
        assert!(ended.elapsed() < Duration::from_secs(60), "the guard does not act");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_restored(&tree);
}

fn what_is_put_back_may_be_changed_again() {
    let (_root, tree, state) = machine();
    let lock = Lock::to_bench(&state).unwrap();
    let changes = begin(&tree, &state, &lock);
    change(&tree);
    changes.put_back(Duration::ZERO);
    assert_restored(&tree);
    change(&tree);
    changes.release().unwrap();
    assert_restored(&tree);
}

fn a_killed_guard_is_replaced_by_the_bench() {
    let (_root, tree, state) = machine();
    let lock = Lock::to_bench(&state).unwrap();
    let mut changes = begin(&tree, &state, &lock);
    change(&tree);
    signal(changes.guard_pid().unwrap(), "-KILL");
    // Without a guard nothing more is changed; the signal takes a moment.
    let since = Instant::now();
    let mut more = (0..).map(|n| Target::Value { file: format!("/proc/sys/vm/{n}") });
    while changes.hold(&more.next().unwrap()).is_ok() {
        assert!(since.elapsed() < Duration::from_secs(30), "the guard lives on");
    }
    changes.release().unwrap();
    assert_restored(&tree);
    assert!(receipts(&state).is_empty());
}

/// Changes the host and is killed: nothing of it runs any more.
fn change_and_die(root: &Path, state: &Path) {
    let tree = Tree::at(root);
    let lock = Lock::to_bench(state).unwrap();
    let _changes = begin(&tree, state, &lock);
    change(&tree);
    signal(std::process::id(), "-KILL");
    std::thread::sleep(Duration::from_secs(600));
}

fn a_killed_bench_is_restored_by_the_guard() {
    let (root, tree, state) = machine();
    let mut bench = Command::new("/proc/self/exe");
    assert!(!bench.arg(root.path()).arg(&state).status().unwrap().success());
    // The guard has the lock until all is put back.
    let _lock = Lock::to_bench(&state).unwrap();
    assert_restored(&tree);
    assert!(receipts(&state).is_empty());
}

fn the_next_bench_restores_what_both_left_behind() {
    let (_root, tree, state) = machine();
    leave_behind(&tree, &state, None);
    let _lock = Lock::to_bench(&state).unwrap();
    let restored = recover(&folder(&state), &tree).unwrap();
    assert_eq!(restored, [format!("/{POOL}/nr_hugepages"), WORD.to_owned()]);
    assert_restored(&tree);
    assert!(recover(&folder(&state), &tree).unwrap().is_empty());
    assert!(receipts(&state).is_empty());
}

fn values_of_another_boot_do_not_count() {
    let (_root, tree, state) = machine();
    leave_behind(&tree, &state, Some("another-boot"));
    let _lock = Lock::to_bench(&state).unwrap();
    assert!(recover(&folder(&state), &tree).unwrap().is_empty());
    assert_eq!(tree.word(WORD).unwrap(), "always");
    assert!(receipts(&state).is_empty());
}

fn a_guard_that_does_not_start_leaves_no_receipt() {
    let (_root, tree, state) = machine();
    let lock = Lock::to_bench(&state).unwrap();
    let program = Program::at("/bin/false".into());
    assert!(Temporary::begin(&program, &folder(&state), Some(&lock), &tree, "a-run").is_err());
    assert!(receipts(&state).is_empty());
}

/// The guard ignores the signals that end the bench, holds the lock as long as it works, and
/// gives up neither.
fn polite_signals_do_not_end_the_guard() {
    let (_root, tree, state) = machine();
    let lock = Lock::to_bench(&state).unwrap();
    let changes = begin(&tree, &state, &lock);
    change(&tree);
    for name in ["-TERM", "-INT", "-HUP"] {
        signal(changes.guard_pid().unwrap(), name);
    }
    drop(lock);
    assert!(Lock::to_bench(&state).is_err(), "the guard holds the lock");
    changes.release().unwrap();
    assert_restored(&tree);
    assert!(Lock::to_bench(&state).is_ok());
}

fn a_guard_acts_on_the_last_word_that_it_heard() {
    let folder = tempfile::tempdir().unwrap();
    let [restarted, cleaned] = ["restarted", "cleaned"].map(|name| folder.path().join(name));
    let act = |words: fn(&mut Guard)| {
        let duty = Duty {
            root: folder.path().to_owned(),
            receipts: folder.path().join("receipts"),
            plan: "a-plan".to_owned(),
            again: Vec::new(),
            restart: Some(format!("touch {}", restarted.display())),
            clean: Some(format!("touch {}", cleaned.display())),
        };
        let mut guard = Guard::start(&Program::this(), &duty, None).unwrap();
        words(&mut guard);
        drop(guard);
        [&restarted, &cleaned].map(|file| fs::remove_file(file).is_ok())
    };
    assert_eq!(act(|_| ()), [false, true], "nothing was changed");
    assert_eq!(act(|guard| guard.changing().unwrap()), [true, true]);
    assert_eq!(act(|guard| guard.restarting().unwrap()), [true, true]);
    let as_before = |guard: &mut Guard| {
        guard.changing().unwrap();
        guard.as_before();
    };
    assert_eq!(act(as_before), [false, true]);
    let done = |guard: &mut Guard| {
        guard.changing().unwrap();
        guard.done();
    };
    assert_eq!(act(done), [false, false]);
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}
