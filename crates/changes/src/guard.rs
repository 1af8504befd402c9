//! The guard: a process of its own that puts a host back once the one that changes it is gone.
//!
//! It holds one end of a socket whose other end the process that changes the host alone holds. Its
//! duty comes first, then a byte whenever the host begins to differ from what it was, or is as it
//! was again. Whatever ends that process (its own wish, an error, a panic, a signal it cannot catch)
//! closes the socket. Then the guard acts on the last byte. The prior values are in the receipts, so
//! if the guard is killed too, the next start or `untax undo --stale` puts them back.

use crate::executor;
use crate::lock::Lock;
use crate::receipt::{Receipt, header};
use crate::restore;
use crate::tree::Tree;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use untax_core::plan::Step;
use untax_core::receipt::Status;

/// The hidden subcommand that is the guard.
const PART: &str = "__guard";

/// The guard has its duty.
const READY: u8 = b'r';

/// The host is not as it was, from now on.
const CHANGED: u8 = b'!';
/// The database is being restarted, and may be down until another byte comes.
const RESTARTING: u8 = b'r';
/// The host is as it was; what a workload made is still there.
const AS_BEFORE: u8 = b'=';
/// There is nothing left to do.
const DONE: u8 = b'.';

/// How often and how soon again it is tried to remove what a workload made: the last trial of a killed
/// verification goes on for a while, and uses it.
const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// How often and how soon again the database is restarted: what refused it may be over soon, as
/// systemd's own limit is, which by default refuses a sixth start within 10 s.
const RESTARTS: u32 = 4;
const RESTART_PAUSE: Duration = Duration::from_secs(10);

/// Where the kernel never kills when memory runs out: the guard must outlive the one that it guards.
const NEVER: &str = "-1000";

/// The program that is started as the guard: one that calls [`main`] first of all.
#[derive(Debug, Clone)]
pub struct Program(PathBuf);

impl Program {
    /// This very program, even when its file was replaced or removed since it started.
    pub fn this() -> Self {
        Self(PathBuf::from("/proc/self/exe"))
    }

    /// Another program.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// A hidden part of it.
    pub fn part(&self, name: &str) -> Command {
        let mut command = Command::new(&self.0);
        command.arg0("untax").arg(name);
        command
    }
}

/// The state to restore, however the guarded process ends.
#[derive(Debug, Serialize, Deserialize)]
pub struct Duty {
    /// `/`, or the directory in place of it.
    pub root: PathBuf,
    /// The folder of the receipts.
    pub receipts: PathBuf,
    /// The plan, or the run, whose receipts are to be undone.
    pub plan: String,
    /// The steps that were applied before, and are to be applied again.
    pub again: Vec<Step>,
    /// The shell command that restarts the database.
    pub restart: Option<String>,
    /// The shell command that removes what a workload made.
    pub clean: Option<String>,
}

/// Why a host is not guarded.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It did not start.
    #[error("the guard of the host did not start; nothing was changed")]
    Start(#[source] io::Error),
    /// It was ended.
    #[error("the guard of the host is gone; nothing more is changed")]
    Gone(#[source] io::Error),
}

/// A guard at work. It ends when this is dropped, and acts before if it heard of a change.
#[derive(Debug)]
pub struct Guard {
    link: UnixStream,
    process: Child,
    goes_on: bool,
}

impl Guard {
    /// Starts the guard; it has its duty, and the lock, when this returns.
    pub fn start(program: &Program, duty: &Duty, lock: Option<&Lock>) -> Result<Self, GuardError> {
        let start = || -> io::Result<Self> {
            let (link, its) = UnixStream::pair()?;
            let lock = lock.map_or(Ok(Stdio::null()), |lock| lock.descriptor().map(Stdio::from))?;
            // The folder is for people who look at processes.
            let mut command = program.part(PART);
            command.arg(&duty.receipts).stdin(OwnedFd::from(its)).stdout(lock);
            let mut guard = Self { link, process: command.spawn()?, goes_on: false };
            // Or it would hold the other end, and never hear of its own end.
            drop(command);
            guard.tell(&serde_json::to_vec(duty)?)?;
            guard.tell(b"\n")?;
            let mut word = [0];
            guard.link.read_exact(&mut word)?;
            if word == [READY] { Ok(guard) } else { Err(io::ErrorKind::InvalidData.into()) }
        };
        start().map_err(GuardError::Start)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether its process ended, though it should not.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(_)))
    }

    fn tell(&mut self, words: &[u8]) -> io::Result<()> {
        self.link.write_all(words)
    }

    /// To be told before a change: without a guard nothing is changed.
    pub fn changing(&mut self) -> Result<(), GuardError> {
        self.tell(&[CHANGED]).map_err(GuardError::Gone)
    }

    /// To be told before the database is restarted.
    pub fn restarting(&mut self) -> Result<(), GuardError> {
        self.tell(&[RESTARTING]).map_err(GuardError::Gone)
    }

    /// To be told when the host is as it was.
    pub fn as_before(&mut self) {
        // A guard that is gone needs no word.
        let _ = self.tell(&[AS_BEFORE]);
    }

    /// To be told when there is nothing left that it could do.
    pub fn done(&mut self) {
        let _ = self.tell(&[DONE]);
    }

    /// Leaves it at work: it puts the host back in the background, after this process ended as well.
    pub fn leave(mut self) {
        self.goes_on = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.link.shutdown(Shutdown::Both);
        if !self.goes_on {
            // It says itself what it could not do.
            let _ = self.process.wait();
        }
    }
}

/// Is the guard when the arguments (the program's name first) ask for it: the whole life of its
/// process. To be called first of all by every program that is a [`Program`].
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.into_iter().nth(1)? != PART {
        return None;
    }
    let ended = keep().map_err(|error| error.to_string()).and_then(|ended| ended);
    Some(ended.map_or_else(
        |why| {
            eprintln!("untax: the guard of the host: {why}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    ))
}

/// The inner error says what could not be put back.
fn keep() -> io::Result<Result<(), String>> {
    outlive()?;
    let link = UnixStream::from(rustix::io::dup(rustix::stdio::stdin())?);
    let mut link = BufReader::new(link);
    let mut duty = String::new();
    link.read_line(&mut duty)?;
    let duty: Duty = serde_json::from_str(&duty)?;
    link.get_mut().write_all(&[READY])?;
    let mut words = Vec::new();
    // A process that dies before it has read that shows as an error, which says the same as the end.
    let _ = link.read_to_end(&mut words);
    Ok(match words.last() {
        Some(&DONE) => Ok(()),
        Some(&CHANGED) => both(restore(&duty, false), clean(&duty)),
        Some(&RESTARTING) => both(restore(&duty, true), clean(&duty)),
        _ => clean(&duty),
    })
}

/// Makes this process outlive the one that started it, also when that one is ended by a signal to all
/// its processes, or because memory ran out.
fn outlive() -> io::Result<()> {
    rustix::thread::set_name(c"untax-guard")?;
    // Lowering the score takes privileges; where they lack, the default remains.
    let _ = std::fs::write("/proc/self/oom_score_adj", NEVER);
    rustix::process::setsid()?;
    for signal in [SIGHUP].iter().chain(TERM_SIGNALS) {
        signal_hook::flag::register(*signal, Arc::default())?;
    }
    Ok(())
}

/// Neither error hides the other.
fn both(first: Result<(), String>, second: Result<(), String>) -> Result<(), String> {
    match (first, second) {
        (Err(first), Err(second)) => Err(format!("{first}; {second}")),
        (first, second) => first.and(second),
    }
}

/// Leaves the host as it was, and the database running. Where not all can be put back, a database that
/// runs is left alone, as it might not start with half of a plan, and one that may be down is started.
fn restore(duty: &Duty, may_be_down: bool) -> Result<(), String> {
    let is_back = put_back(duty);
    if is_back.is_err() && !may_be_down {
        return is_back;
    }
    let Some(command) = &duty.restart else { return is_back };
    let restarted = persist(RESTARTS, RESTART_PAUSE, || shell(command));
    both(is_back, restarted.map_err(|why| format!("the database was not restarted: {why}")))
}

/// Undoes what is applied of the plan, wholly or half way, and applies it anew if it was before.
fn put_back(duty: &Duty) -> Result<(), String> {
    let tree = Tree::at(&duty.root);
    let (receipts, damaged) = Receipt::all(&duty.receipts);
    for error in damaged {
        eprintln!("untax: {error}");
    }
    let of_plan = receipts.into_iter().filter(|receipt| receipt.header().plan == duty.plan);
    let left = of_plan.filter(|receipt| receipt.status() != Status::Reverted);
    let mut undone = Ok(());
    // The newest first: each tells what was before it.
    for receipt in left.rev() {
        undone = both(undone, undo(&tree, receipt));
    }
    undone?;
    if !duty.again.is_empty() {
        let header = header(&duty.plan, duty.again.clone(), false);
        let applied =
            executor::apply(&tree, &duty.receipts, header, &AtomicBool::new(false), |_| {});
        applied.map_err(|error| with_causes(&error))?;
    }
    Ok(())
}

fn undo(tree: &Tree, mut receipt: Receipt) -> Result<(), String> {
    if receipt.holdings().is_empty() {
        return executor::undo_wholly(tree, &mut receipt).map_err(|error| with_causes(&error));
    }
    restore::undo(tree, receipt, restore::PATIENCE).map(|_| ()).map_err(|error| with_causes(&error))
}

fn clean(duty: &Duty) -> Result<(), String> {
    let Some(command) = &duty.clean else { return Ok(()) };
    persist(TRIES, PAUSE, || shell(command))
        .map_err(|why| format!("what the workload made is still there: {why}"))
}

fn shell(command: &str) -> Result<(), String> {
    let command = ["sh", "-c", command].map(str::to_owned);
    Tree::live().run(&command).map(drop).map_err(|error| error.to_string())
}

/// An error with all that caused it.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Tries something until it is done, so often at most; the last try says why it is not.
fn persist(
    tries: u32,
    pause: Duration,
    attempt: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    for _ in 1..tries {
        if attempt().is_ok() {
            return Ok(());
        }
        std::thread::sleep(pause);
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;
    use std::path::Path;
    use untax_core::plan::{Effect, Target};

    fn makes(file: &Path) -> Step {
        let file = file.to_str().unwrap().to_owned();
        Step {
            id: file.clone(),
            remedy: "test".to_owned(),
            summary: String::new(),
            databases: Vec::new(),
            target: Target::File { file },
            from: None,
            to: Some("here\n".to_owned()),
            refresh: Vec::new(),
            effect: Effect::Now,
        }
    }

    #[test]
    fn where_not_all_is_put_back_a_database_that_may_be_down_is_restarted_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other, restarted] =
            ["file", "other", "restarted"].map(|name| folder.path().join(name));
        let tree = Tree::at(Path::new("/"));
        let receipts = folder.path().join("receipts");
        let header = header("plan-1", vec![makes(&file), makes(&other)], true);
        executor::apply(&tree, &receipts, header, &AtomicBool::new(false), |_| {}).unwrap();
        fs::write(&file, "theirs\n").unwrap();
        let duty = Duty {
            root: tree.root().to_owned(),
            receipts,
            plan: "plan-1".to_owned(),
            again: Vec::new(),
            restart: Some(format!("touch {}", restarted.display())),
            clean: None,
        };
        for may_be_down in [false, true] {
            let said = restore(&duty, may_be_down).unwrap_err();
            assert!(said.contains("could not be undone wholly"), "{said}");
            assert!(file.exists() && !other.exists());
            assert_eq!(restarted.exists(), may_be_down);
        }
    }

    #[test]
    fn what_fails_is_tried_again_and_not_for_ever() {
        let tries = |good: u32| {
            let made = Cell::new(0);
            let done = persist(3, Duration::ZERO, || {
                made.set(made.get() + 1);
                if made.get() == good { Ok(()) } else { Err("not yet".to_owned()) }
            });
            (made.get(), done.is_ok())
        };
        assert_eq!(tries(1), (1, true));
        assert_eq!(tries(3), (3, true));
        assert_eq!(tries(9), (3, false));
    }
}
