//! Processes that the bench starts from its own program, and their hidden subcommands.

use crate::pages::job::Job;
use crate::{calibrate, pools};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

/// Fills or reads a table; see [`Job`].
const READ_PAGES: &str = "__read-pages";
/// Restores the pools when the bench is gone; see [`pools::Guard`].
const GUARD: &str = "__guard";
/// Measures what faults and touches cost; see [`calibrate`].
const CALIBRATE: &str = "__calibrate";

/// Where the kernel kills first when memory runs out: at a bench, not at a database.
const FIRST: &str = "1000";
/// Where it never kills: the guard must outlive the bench.
const NEVER: &str = "-1000";

/// The program whose hidden subcommands the children run.
#[derive(Debug, Clone)]
pub struct Program(PathBuf);

impl Program {
    /// This very program, even when its file was replaced or removed since it started.
    pub fn this() -> Self {
        Self(PathBuf::from("/proc/self/exe"))
    }

    /// Another program that calls [`main`].
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Starts a child that works on a table and dies with the thread that calls this.
    pub(crate) fn start_job(&self, job: &Job, table: Stdio, control: Stdio) -> io::Result<Child> {
        let job = serde_json::to_string(job)?;
        self.dependent(READ_PAGES, job).stdin(table).stdout(control).spawn()
    }

    /// Starts a child that calibrates and prints JSON.
    pub(crate) fn start_calibration(&self, spec: &calibrate::Spec) -> io::Result<Child> {
        let spec = serde_json::to_string(spec)?;
        let mut command = self.dependent(CALIBRATE, spec);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }

    /// Starts the guard. It is no dependent: it must outlive us.
    pub(crate) fn start_guard(
        &self,
        journal: OsString,
        bench: Stdio,
        lock: Stdio,
    ) -> io::Result<Child> {
        self.command(GUARD).arg(journal).stdin(bench).stdout(lock).spawn()
    }

    /// A child in a process group of its own, so that Ctrl-C reaches the bench alone, which then
    /// ends its children in order.
    fn dependent(&self, role: &str, spec: String) -> Command {
        let mut command = self.command(role);
        command.arg(std::process::id().to_string()).arg(spec).process_group(0);
        command
    }

    fn command(&self, role: &str) -> Command {
        let mut command = Command::new(&self.0);
        command.arg0("untax").arg(role);
        command
    }
}

/// Runs a hidden subcommand when the arguments (the program's name first) ask for one. To be
/// called first of all by every program that is used as a [`Program`].
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    let role = arguments.next()?;
    let ended = match role.to_str()? {
        READ_PAGES => read_pages(arguments),
        GUARD => guard(arguments),
        CALIBRATE => run_calibration(arguments),
        _ => return None,
    };
    Some(match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("untax {}: {error}", role.display());
            ExitCode::from(2)
        }
    })
}

fn read_pages(arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    rustix::thread::set_name(c"untax-pages")?;
    let job: Job = serde_json::from_str(&depend(arguments)?)?;
    job.work()
}

fn run_calibration(arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    rustix::thread::set_name(c"untax-calibrate")?;
    let spec: calibrate::Spec = serde_json::from_str(&depend(arguments)?)?;
    serde_json::to_writer(io::stdout(), &spec.measure())?;
    Ok(())
}

fn guard(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    outlive()?;
    let journal = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    pools::guard::keep(journal.as_ref())
}

/// Makes this process a guard: it outlives the one that started it, also when that one is ended by a
/// signal to all its processes, or because memory ran out.
pub fn outlive() -> io::Result<()> {
    rustix::thread::set_name(c"untax-guard")?;
    offer_to_oom_killer(NEVER);
    rustix::process::setsid()?;
    for signal in [SIGHUP].iter().chain(TERM_SIGNALS) {
        signal_hook::flag::register(*signal, Arc::default())?;
    }
    Ok(())
}

/// Ties this process to the bench that started it, and gives back its specification.
fn depend(mut arguments: impl Iterator<Item = OsString>) -> io::Result<String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut text = || arguments.next().and_then(|a| a.into_string().ok());
    let bad = || io::Error::from(io::ErrorKind::InvalidInput);
    let parent: i32 = text().and_then(|pid| pid.parse().ok()).ok_or_else(bad)?;
    let now = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    if now != Some(parent) {
        return Err(io::Error::other("the bench ended before its child began"));
    }
    offer_to_oom_killer(FIRST);
    text().ok_or_else(bad)
}

/// Lowering the score takes privileges; where they lack, the default remains.
fn offer_to_oom_killer(score: &str) {
    let _ = std::fs::write("/proc/self/oom_score_adj", score);
}
