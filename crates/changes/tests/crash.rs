//! Whatever ends the executor, undo leaves the host as it was, byte for byte.
//!
//! `cargo test -p untax-changes --test crash -- 200` kills it so often at random moments; without
//! a number, a few times.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test, which reads what it wrote itself"
)]

use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use untax_changes::executor::{self, ExecutorError};
use untax_changes::{Lock, LockError, Receipt, Tree};
use untax_core::plan::{Effect, Step, Target};
use untax_core::receipt::{Header, SCHEMA, Status};

/// How often a kill is tried unless the command line says otherwise.
const KILLS: u32 = 20;

/// Kills the executor is to survive without being started by a user, through these arguments.
const CHILD: &str = "apply-or-undo";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [CHILD, "apply", root] => drop(apply(Path::new(root), &steps(None))),
        [CHILD, "undo", root] => undo_all(Path::new(root)),
        _ => {
            let kills = arguments.iter().find_map(|word| word.parse().ok()).unwrap_or(KILLS);
            a_failing_step_anywhere_changes_nothing();
            a_torn_record_is_no_record();
            two_executors_exclude_each_other();
            somebody_elses_change_is_left_alone();
            a_block_that_lost_its_marks_is_not_gone();
            what_stands_already_needs_no_receipt();
            what_was_written_since_a_receipt_was_read_counts();
            a_full_disk_changes_nothing();
            a_parameter_that_vanishes_is_refused_and_needs_no_undo();
            killed_anywhere(kills);
        }
    }
}

/// A host that has one of each kind of target that a directory of plain files can stand for.
struct Host {
    root: tempfile::TempDir,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (file, text) in [("nr", "3\n"), ("surplus", "0\n"), ("free", "3\n")] {
            put(&format!("sys/pool/{file}_hugepages"), text);
        }
        put("sys/thp/enabled", "always [madvise] never\n");
        put("sys/fs/cgroup/db/cpu.max", "20000 100000\n");
        put("sys/fs/cgroup/batch/io.max", "8:0 rbps=1 wbps=max riops=max wiops=max\n");
        put("etc/db.conf", "a = 1\n# no line feed at the end");
        put("etc/sysctl.d/README", "theirs\n");
        // Takes its time, so that kills come while it runs.
        put("usr/sbin/refresh", "#!/bin/sh\nsleep 0.00$(($$ % 10))\n");
        put("usr/sbin/fail", "#!/bin/sh\nexit 3\n");
        for program in ["refresh", "fail"] {
            let path = root.path().join("usr/sbin").join(program);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let before = tree(root.path());
        Self { root, before }
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    /// Everything is as before: each file, byte for byte, and none more.
    fn assert_untouched(&self, when: &str) {
        let now = tree(self.path());
        for (path, text) in &self.before {
            let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let is = now.get(path).unwrap_or_else(|| panic!("{when}: {} is gone", path.display()));
            assert_eq!(
                value(path, &told(is)),
                value(path, &told(text)),
                "{when}: {}",
                path.display()
            );
        }
        let more: Vec<_> = now.keys().filter(|path| !self.before.contains_key(*path)).collect();
        assert!(more.is_empty(), "{when}: {more:?}");
    }
}

/// What a file says. The kernel puts line feeds and brackets into its own; a directory of plain
/// files keeps what was written.
fn value(path: &Path, text: &str) -> String {
    if path.starts_with("etc") {
        return text.to_owned();
    }
    let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(text.trim(), |(word, _)| word).to_owned()
}

/// Every file and directory below the root but the receipts, which are no part of the host.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if name.starts_with("state") {
                continue;
            }
            if path.is_dir() {
                found.insert(name, Vec::new());
                folders.push(path);
            } else {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// One step of each kind; the step at `fails`, when given, ends with a program that fails.
fn steps(fails: Option<usize>) -> Vec<Step> {
    let at = |file: &str| file.to_owned();
    let targets = [
        (Target::Pool { directory: at("/sys/pool") }, Some("3"), Some("9")),
        (Target::Word { file: at("/sys/thp/enabled") }, Some("madvise"), Some("never")),
        (
            Target::Value { file: at("/sys/fs/cgroup/db/cpu.max") },
            Some("20000 100000"),
            Some("max 100000"),
        ),
        (
            Target::DeviceLimit { file: at("/sys/fs/cgroup/batch/io.max"), device: at("8:16") },
            None,
            Some("rbps=max wbps=1048576 riops=max wiops=max"),
        ),
        (Target::Block { file: at("/etc/db.conf") }, None, Some("huge_pages = on\n")),
        (Target::File { file: at("/etc/sysctl.d/90-untax.conf") }, None, Some("vm.x = 1\n")),
        (Target::File { file: at("/etc/new/folder/untax.cfg") }, None, Some("y = 2\n")),
    ];
    let step = |(n, (target, from, to)): (usize, (Target, Option<&str>, Option<&str>))| Step {
        id: format!("step-{n}"),
        remedy: "test".to_owned(),
        summary: String::new(),
        databases: Vec::new(),
        target,
        from: from.map(str::to_owned),
        to: to.map(str::to_owned),
        refresh: vec![if fails == Some(n) { "fail" } else { "refresh" }.to_owned()],
        effect: Effect::Now,
    };
    targets.into_iter().enumerate().map(step).collect()
}

fn receipts(root: &Path) -> PathBuf {
    root.join("state")
}

fn apply(root: &Path, steps: &[Step]) -> Result<Option<Receipt>, ExecutorError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let header = Header {
        schema: SCHEMA.to_owned(),
        receipt: format!("receipt-{}-{next}", std::process::id()),
        plan: "plan".to_owned(),
        begun_at: Timestamp::now(),
        temporary: false,
        steps: steps.to_vec(),
    };
    let stop = AtomicBool::new(false);
    executor::apply(&Tree::at(root), &receipts(root), header, &stop, |_| {})
}

fn a_parameter_that_vanishes_is_refused_and_needs_no_undo() {
    let host = Host::new();
    let file = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
    let path = host.path().join(&file[1..]);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let step = Step {
        id: "halt-poll".to_owned(),
        target: Target::Value { file: file.to_owned() },
        from: Some("0".to_owned()),
        to: Some("200000".to_owned()),
        refresh: Vec::new(),
        ..steps(None).remove(0)
    };
    let steps = [step];
    let refused = apply(host.path(), &steps).expect_err("it is not there").to_string();
    assert!(
        refused.contains("halt-poll changed since the check: it was 0, now it is"),
        "{refused}"
    );
    fs::write(&path, "0\n").unwrap();
    let mut receipt = apply(host.path(), &steps).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), "200000");
    fs::remove_file(&path).unwrap();
    let undone = executor::undo(&Tree::at(host.path()), &mut receipt, false).unwrap();
    assert!(undone.is_whole(), "{undone:?}");
    assert!(!path.exists(), "nothing is made in its place");
}

fn undo_all(root: &Path) {
    let (receipts, damaged) = Receipt::all(&receipts(root));
    assert!(damaged.is_empty(), "{damaged:?}");
    for mut receipt in receipts {
        if receipt.status() != Status::Reverted {
            let undone = executor::undo(&Tree::at(root), &mut receipt, false).unwrap();
            assert!(undone.is_whole(), "{undone:?}");
        }
    }
}

fn a_failing_step_anywhere_changes_nothing() {
    for fails in 0..steps(None).len() {
        let host = Host::new();
        let error = apply(host.path(), &steps(Some(fails))).expect_err("a step fails");
        // Undoing runs the same program, which fails again: the value is put back nevertheless.
        assert!(matches!(error, ExecutorError::Failed { .. }), "{error}");
        undo_all_or_fail(host.path());
        host.assert_untouched(&format!("step {fails} failed"));
    }
    let host = Host::new();
    for _ in 0..2 {
        apply(host.path(), &steps(None)).unwrap();
    }
    undo_all(host.path());
    undo_all(host.path());
    host.assert_untouched("all done twice and undone twice");
}

/// A program that fails while undoing is told; the values are what counts.
fn undo_all_or_fail(root: &Path) {
    for mut receipt in Receipt::all(&receipts(root)).0 {
        let undone = executor::undo(&Tree::at(root), &mut receipt, false).unwrap();
        assert!(undone.drifted.is_empty(), "{undone:?}");
    }
}

/// Applies all steps: the receipt's file, what it says, and where its first record ends.
fn applied(host: &Host) -> (PathBuf, Vec<u8>, usize) {
    let receipt = apply(host.path(), &steps(None)).unwrap().unwrap();
    let path = receipts(host.path()).join(format!("{}.jsonl", receipt.id()));
    let whole = fs::read(&path).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    (path, whole, header)
}

fn a_torn_record_is_no_record() {
    let host = Host::new();
    let (path, whole, header) = applied(&host);
    for end in header..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        Receipt::open(&path).unwrap_or_else(|error| panic!("cut off at {end}: {error}"));
    }
    // A receipt that ends within its last record still undoes all before it.
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    undo_all(host.path());
    host.assert_untouched("torn record");
    fs::write(&path, [&whole[..header], b"garbage\n", &whole[header..]].concat()).unwrap();
    assert!(Receipt::open(&path).is_err(), "damaged in its middle");
}

fn two_executors_exclude_each_other() {
    let host = Host::new();
    let held = Lock::to_change(&Tree::at(host.path())).unwrap();
    let refused = apply(host.path(), &steps(None)).expect_err("the host is locked");
    assert!(matches!(refused, ExecutorError::Lock(LockError::Changing)), "{refused}");
    drop(held);
    apply(host.path(), &steps(None)).unwrap();
}

fn somebody_elses_change_is_left_alone() {
    let host = Host::new();
    let mut receipt = apply(host.path(), &steps(None)).unwrap().unwrap();
    let file = host.path().join("sys/fs/cgroup/db/cpu.max");
    fs::write(&file, "50000 100000\n").unwrap();
    let undone = executor::undo(&Tree::at(host.path()), &mut receipt, false).unwrap();
    assert_eq!(undone.drifted.len(), 1, "{undone:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "50000 100000\n");
    let undone = executor::undo(&Tree::at(host.path()), &mut receipt, true).unwrap();
    assert!(undone.is_whole());
    host.assert_untouched("forced");
    let refused = {
        fs::write(&file, "50000 100000\n").unwrap();
        apply(host.path(), &steps(None)).expect_err("it is not as it was when the plan was made")
    };
    assert!(refused.to_string().contains("changed since"), "{refused}");
}

fn a_block_that_lost_its_marks_is_not_gone() {
    let (begin, lines, end) =
        ("# untax: begin; removed by untax undo\n", "huge_pages = on\n", "# untax: end\n");
    for lost in [&[begin][..], &[end], &[begin, end], &[begin, lines], &[lines, end]] {
        let host = Host::new();
        let mut receipt = apply(host.path(), &steps(None)).unwrap().unwrap();
        let file = host.path().join("etc/db.conf");
        let text = || fs::read_to_string(&file).unwrap();
        let cut = lost.iter().fold(text(), |text, part| text.replace(*part, ""));
        fs::write(&file, &cut).unwrap();
        let undone = executor::undo(&Tree::at(host.path()), &mut receipt, false).unwrap();
        assert_eq!(undone.drifted.len(), 1, "without {lost:?}: {undone:?}");
        assert_eq!(text(), cut, "it is left alone");
        let undone = executor::undo(&Tree::at(host.path()), &mut receipt, true).unwrap();
        assert!(undone.is_whole(), "without {lost:?}: {undone:?}");
        assert_eq!(text().trim_end(), "a = 1\n# no line feed at the end", "without {lost:?}");
    }
    let host = Host::new();
    let file = host.path().join("etc/db.conf");
    fs::write(&file, lines).unwrap();
    let mut receipt = apply(host.path(), &steps(None)).unwrap().unwrap();
    fs::write(&file, lines).unwrap();
    let undone = executor::undo(&Tree::at(host.path()), &mut receipt, false).unwrap();
    assert!(undone.is_whole(), "such a line was there before: {undone:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), lines);
    let host = Host::new();
    apply(host.path(), &steps(None)).unwrap();
    let file = host.path().join("etc/db.conf");
    fs::write(file, &host.before[Path::new("etc/db.conf")]).unwrap();
    // Somebody removed all of it.
    undo_all(host.path());
    host.assert_untouched("removed by hand");
}

fn what_stands_already_needs_no_receipt() {
    let host = Host::new();
    apply(host.path(), &steps(None)).unwrap().unwrap();
    assert_eq!(apply(host.path(), &steps(None)).unwrap(), None);
    assert_eq!(Receipt::all(&receipts(host.path())).0.len(), 1);
}

/// As when an executor was just ending: its receipt was read before it had written all of it.
fn what_was_written_since_a_receipt_was_read_counts() {
    let read_early = |host: &Host, records: usize| {
        let (path, whole, header) = applied(host);
        let mut ends = (header..=whole.len()).filter(|end| whole[end - 1] == b'\n');
        let end = ends.nth(records).unwrap();
        fs::write(&path, &whole[..end]).unwrap();
        let receipt = Receipt::open(&path).unwrap();
        fs::write(&path, &whole).unwrap();
        receipt
    };
    let host = Host::new();
    let mut receipt = read_early(&host, 2);
    assert!(executor::undo(&Tree::at(host.path()), &mut receipt, false).unwrap().is_whole());
    host.assert_untouched("a receipt that was read early");

    let host = Host::new();
    let mut receipt = read_early(&host, 1);
    assert_eq!(receipt.status(), Status::Interrupted);
    let undone = executor::undo_stale(&Tree::at(host.path()), &mut receipt, false).unwrap();
    assert!(undone.restored.is_empty() && undone.is_whole(), "{undone:?}");
    assert_eq!(receipt.status(), Status::Applied, "it is half done no more");
    undo_all(host.path());
    host.assert_untouched("a receipt that was half way");
}

/// A disk for receipts of so many pages, unmounted with this value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf, pages: usize) -> Option<Self> {
        fs::create_dir_all(&at).unwrap();
        let size = format!("size={}k", pages * 4);
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at);
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Self(at))
    }

    fn fill(&self, pages: usize) {
        // It may be full before.
        let _ = fs::write(self.0.join("filler"), vec![0; pages * 4096]);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().unwrap();
    }
}

/// Wherever in the receipt the disk is full: what was done is undone, and undoing needs no room.
fn a_full_disk_changes_nothing() {
    let paddings: Vec<usize> = (0..4000).step_by(250).collect();
    let Some(done) = paddings.iter().map(|padding| fits(*padding)).collect::<Option<Vec<_>>>()
    else {
        println!("left out: only root may mount a disk to fill");
        return;
    };
    let count = done.iter().filter(|done| **done).count();
    assert!(count > 3 && done.len() - count > 3, "{done:?}: it says nothing");
    // The least that is too long leaves no room for the last record alone.
    let (mut fitting, mut too_long) = (paddings[count - 1], paddings[count]);
    while too_long - fitting > 1 {
        let middle = fitting.midpoint(too_long);
        *(if fits(middle).unwrap() { &mut fitting } else { &mut too_long }) = middle;
    }
}

/// Whether a receipt whose first record is so many bytes longer fits into a page; in either case the host
/// is as before in the end. `None` where no disk can be made.
fn fits(padding: usize) -> Option<bool> {
    const PAGES: usize = 4;
    let host = Host::new();
    let disk = SmallDisk::mount(receipts(host.path()), PAGES)?;
    disk.fill(PAGES - 1);
    let mut steps = steps(None);
    steps[0].summary = "-".repeat(padding);
    let done = apply(host.path(), &steps).is_ok();
    if done {
        disk.fill(PAGES);
        undo_all(host.path());
    }
    host.assert_untouched(&format!("a first record that is {padding} bytes longer"));
    Some(done)
}

/// Kills `apply`, and every other time `undo` as well, then undoes.
fn killed_anywhere(kills: u32) {
    let mut rng = fastrand::Rng::with_seed(5);
    // The shortest of a few: one may be held up by the disk.
    let longest = (0..5).map(|_| whole_run()).min().unwrap_or_default();
    let (mut half_way, mut in_undo) = (0, 0);
    for kill in 0..kills {
        let host = Host::new();
        let alive = run_and_kill("apply", host.path(), longest.mul_f64(rng.f64()));
        let (begun, _) = Receipt::all(&receipts(host.path()));
        half_way += u32::from(begun.iter().any(|r| r.status() == Status::Interrupted));
        if kill % 2 == 0 {
            in_undo += u32::from(run_and_kill("undo", host.path(), longest.mul_f64(rng.f64())));
        }
        undo_all(host.path());
        host.assert_untouched(&format!("kill {kill}, alive: {alive}"));
    }
    println!(
        "{kills} kills of apply, {half_way} of them with the receipt half way; {in_undo} of undo; \
         0 hosts changed"
    );
    assert!(half_way > kills / 4, "the kills come too early or too late");
}

fn whole_run() -> Duration {
    let host = Host::new();
    let began = Instant::now();
    run_and_kill("apply", host.path(), Duration::from_secs(60));
    began.elapsed()
}

/// Whether it was still running when it was killed.
fn run_and_kill(what: &str, root: &Path, after: Duration) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = command.args([CHILD, what]).arg(root).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + after;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}
