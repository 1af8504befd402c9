//! What the tests on real servers share: the built program, its results, and the machine seen by
//! other ways than the program's own.
//!
//! These tests need root and the servers' packages. Where something is missing they are skipped,
//! loudly; `UNTAX_REQUIRE_REAL=1` makes them fail instead. They run one at a time, those of other
//! programs included, because they load and set the machine.

#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod certificates;
pub mod limited;
pub mod numbers;
pub mod prometheus;
pub mod restarts;
pub mod sshd;
pub mod threads;
pub mod tty;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use untax_core::Plan;
use untax_core::plan::{Effect, Step, Target};
use untax_lab::LabError;
use untax_remedies::sealed;
use untax_scenes::{SceneError, Turn};

/// Longer than any run here takes: ends one that hangs, measures nothing.
const HUNG_S: &str = "900";
/// Longer than a guard waits for a server that shuts down.
const SHUTDOWN: Duration = Duration::from_secs(120);

/// Is the guard of what a test changes, where this very program is started as one: see
/// `untax_changes::guard::main`.
#[test]
fn __guard() {
    let _ = untax_changes::guard::main(std::env::args_os());
}

/// Runs a test that needs root and real servers, when it is its turn.
pub fn real(test: impl FnOnce() -> Result<(), LabError>) {
    let required = std::env::var_os("UNTAX_REQUIRE_REAL").is_some_and(|value| value == "1");
    let turn = if rustix::process::geteuid().is_root() {
        Turn::wait()
    } else {
        Err(SceneError::NeedsRoot { what: "a test on real servers" })
    };
    let tested = turn.map_err(LabError::from).and_then(|_turn| {
        test()?;
        assert_settings_are_back();
        Ok(())
    });
    match tested {
        Ok(()) => {}
        Err(LabError::Scene(
            error @ (SceneError::Missing { .. }
            | SceneError::NotUnpacked { .. }
            | SceneError::NotBuilt { .. }
            | SceneError::NeedsRoot { .. }),
        )) if !required => {
            // Not with a macro: the test harness keeps what those print of a passing test.
            let mut stderr = std::io::stderr();
            writeln!(stderr, "\nSKIPPED: {error}\n").unwrap();
        }
        Err(error) => panic!("{error}: {error:?}"),
    }
}

/// Fails when a scene's settings are not put back once its servers have ended. A pool that is dropped
/// before its server is given back by its guard.
fn assert_settings_are_back() {
    let ended = Instant::now();
    loop {
        let receipts = fs::read_dir("/run/untax").into_iter().flatten().flatten();
        let left: Vec<_> = receipts.map(|receipt| receipt.file_name()).collect();
        if left.is_empty() {
            return;
        }
        assert!(ended.elapsed() < SHUTDOWN, "settings were not put back: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The first good one of a few measurements: on a shared machine any one may be spoilt. Fails with what
/// was wrong with each.
pub fn one_of<T>(tries: usize, mut measure: impl FnMut() -> Result<T, String>) -> T {
    let mut wrong = Vec::new();
    for _ in 0..tries {
        match measure() {
            Ok(good) => return good,
            Err(why) => wrong.push(why),
        }
    }
    panic!("none of {tries}: {wrong:#?}");
}

/// Fails a measurement that may be tried again.
pub fn demand(good: bool, else_say: impl FnOnce() -> String) -> Result<(), String> {
    if good { Ok(()) } else { Err(else_say()) }
}

/// Seconds that the hypervisor has taken from all CPUs.
pub fn stolen_s() -> f64 {
    let text = text("/proc/stat");
    text.split_ascii_whitespace().nth(8).unwrap().parse::<f64>().unwrap() / 100.0
}

/// How a run of the program ended.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn from(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().expect("not killed by a signal");
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The result on standard output, of a run that was to succeed.
    pub fn json(&self) -> Value {
        assert!([0, 1].contains(&self.code), "status {}: {}", self.code, self.stderr);
        serde_json::from_str(&self.stdout).expect("standard output is JSON and nothing else")
    }
}

/// The program with a state directory of its own.
pub struct Untax {
    folder: TempDir,
    user: Vec<String>,
}

impl Untax {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), user: Vec::new() }
    }

    /// The same as a user without any privilege.
    pub fn as_nobody() -> Self {
        let mut untax = Self::new();
        // Out of reach where it was built, maybe.
        fs::copy(env!("CARGO_BIN_EXE_untax"), untax.folder.path().join("untax")).unwrap();
        give_to_nobody(untax.folder.path());
        let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        untax.user = words.map(str::to_owned).to_vec();
        untax
    }

    /// The same, with other words before each command: those of a program that confines it.
    pub fn confined(words: &[&str]) -> Self {
        let mut untax = Self::new();
        untax.user = words.iter().map(|word| (*word).to_owned()).collect();
        untax
    }

    /// Takes a file of another run over into this one's place.
    pub fn take(&self, file: &Path) {
        let copy = self.path(&file.file_name().unwrap().to_string_lossy());
        fs::copy(file, &copy).unwrap();
        give_to_nobody(&copy);
    }

    /// A place for files of the test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command line of the program, to be run or started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        // In the foreground, it passes a signal on once; else to its whole group, and so twice.
        command.args(["--foreground", "--kill-after=5", HUNG_S]).args(&self.user);
        let copy = self.path("untax");
        command.arg(if copy.exists() { copy } else { env!("CARGO_BIN_EXE_untax").into() });
        command.arg("--state-dir").arg(self.path("state")).args(arguments);
        command.current_dir(self.folder.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(&self.command(arguments).output().unwrap())
    }

    /// Starts it, does something, and waits for its end.
    pub fn run_while(&self, arguments: &[&str], meanwhile: impl FnOnce()) -> Ran {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        meanwhile();
        Ran::from(&child.wait_with_output().unwrap())
    }

    /// Starts it, does something when its programs in the kernel watch, and waits for its end.
    pub fn run_watching(&self, arguments: &[&str], meanwhile: impl FnOnce()) -> Ran {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !watches(child.id()) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        meanwhile();
        Ran::from(&child.wait_with_output().unwrap())
    }

    /// Three seconds of one database, without the calibration that only taxes need.
    pub fn check(&self, pid: u32) -> Value {
        let pid = pid.to_string();
        self.run(&["check", "--pid", &pid, "--window", "3s", "--no-calibration", "--json"]).json()
    }
}

/// A test that fails between apply and undo leaves nothing on the machine: undoing is harmless where it was
/// done before, and the receipts go with the folder.
impl Drop for Untax {
    fn drop(&mut self) {
        for receipt in fs::read_dir(self.path("state/receipts")).into_iter().flatten().flatten() {
            let id = receipt.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let _ = self.command(&["undo", &id]).output();
        }
    }
}

/// Whether a program that a command was started for has attached programs in the kernel.
fn watches(timeout: u32) -> bool {
    let children = text(&format!("/proc/{timeout}/task/{timeout}/children"));
    let attached = |child: &str| {
        let files = fs::read_dir(format!("/proc/{child}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link.to_string_lossy().contains("bpf_link"))
    };
    children.split_ascii_whitespace().any(attached)
}

fn give_to_nobody(path: &Path) {
    std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
}

/// A program that runs beside the databases until this is dropped.
pub struct Bystander(Child);

impl Bystander {
    pub fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    /// One that does nothing.
    pub fn sleeping() -> Self {
        let mut sleep = Command::new("sleep");
        sleep.arg("180");
        Self::start(sleep)
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The database with this main process.
pub fn database(check: &Value, pid: u32) -> &Value {
    let databases = check["databases"].as_array().unwrap();
    let found = databases.iter().find(|database| database["pid"] == pid);
    found.unwrap_or_else(|| panic!("no database {pid} in {databases:#?}"))
}

/// The rules of the findings of a database, or of the whole check for the host's.
pub fn rules(findings_of: &Value) -> Vec<&str> {
    let findings = findings_of["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

/// Why each rule could not be measured.
pub fn unmeasured(of: &Value) -> Vec<(&str, &str)> {
    let all = of["unmeasured"].as_array().unwrap();
    all.iter().map(|one| (one["rule"].as_str().unwrap(), one["why"].as_str().unwrap())).collect()
}

/// The sum of `VmPTE` of a process and its children, bytes.
pub fn page_tables(main: u32) -> u64 {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let own = pid == main || field("PPid:")? == u64::from(main);
        own.then(|| field("VmPTE:")).flatten()
    })
    .sum::<u64>()
        * 1024
}

/// Makes a plan from the last check, and says its id and what it is.
pub fn plan(untax: &Untax, rule: &str, options: &[&str]) -> (String, Value) {
    let words = [&["plan", "--only", rule, "--json"], options].concat();
    let plan = untax.run(&words).json();
    (plan["plan"].as_str().unwrap().to_owned(), plan)
}

/// The file that `plan_of_a_file` makes, in the test's place.
pub const MARKER: &str = "marker";

/// Makes a plan, after a check of one database, whose only step is a file that changes nothing; says
/// where the plan is.
pub fn plan_of_a_file(untax: &Untax, pid: u32) -> String {
    untax.check(pid);
    let mut made: Plan = serde_json::from_value(untax.run(&["plan", "--json"]).json()).unwrap();
    made.tasks.clear();
    made.warnings.clear();
    made.steps = vec![Step {
        id: MARKER.to_owned(),
        remedy: MARKER.to_owned(),
        summary: "a file that changes nothing".to_owned(),
        databases: Vec::new(),
        target: Target::File { file: untax.path(MARKER).to_str().unwrap().to_owned() },
        from: None,
        to: Some("here\n".to_owned()),
        refresh: Vec::new(),
        effect: Effect::Now,
    }];
    let file = untax.path("plan.json");
    fs::write(&file, serde_json::to_string(&sealed(made)).unwrap()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Applies a plan; says the receipt's id.
pub fn apply(untax: &Untax, plan: &str) -> String {
    let applied = untax.run(&["apply", plan, "--json"]).json();
    applied["receipt"].as_str().unwrap().to_owned()
}

/// A file's text; empty when there is none.
pub fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// What plans set on this host, and the folders that they make files in: each with its text.
pub fn settings_of_host(more: &[&str]) -> Vec<(String, String)> {
    let dirty = ["background_bytes", "background_ratio", "bytes", "ratio"];
    let dirty = dirty.map(|name| format!("/proc/sys/vm/dirty_{name}"));
    let files = ["/proc/sys/vm/nr_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"];
    let files = files.iter().chain(more).map(|file| (*file).to_owned());
    let mut found: Vec<(String, String)> =
        files.chain(dirty).map(|file| (file.clone(), text(&file))).collect();
    for folder in ["/etc/sysctl.d", "/etc/tmpfiles.d", "/etc/default", "/etc/systemd/system"] {
        let there = if fs::exists(folder).unwrap() { "there" } else { "not there" };
        found.push((folder.to_owned(), there.to_owned()));
        let texts = if there == "there" { texts(Path::new(folder)) } else { Vec::new() };
        found.extend(texts.into_iter().map(|(path, text)| (path.display().to_string(), text)));
    }
    found.sort();
    found
}

/// Waits until the page tables of a loaded server have stopped growing: every connection has been
/// almost everywhere.
pub fn settle(main: u32) {
    let mut before = 0;
    loop {
        let now = page_tables(main);
        if now < before + before / 100 {
            return;
        }
        before = now;
        std::thread::sleep(Duration::from_secs(2));
    }
}

/// All files below a folder, as text.
pub fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(texts(&path));
        } else if kind.is_symlink() {
            found.push((path.clone(), fs::read_link(path).unwrap().display().to_string()));
        } else if kind.is_file() {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            found.push((path, text));
        }
    }
    found
}
