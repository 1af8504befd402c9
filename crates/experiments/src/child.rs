//! Processes that the bench starts from its own program, and their hidden subcommands.

use crate::calibrate;
use crate::pages::job::Job;
use rustix::process::Signal;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use untax_changes::{Program, guard};

/// Fills or reads a table; see [`Job`].
const READ_PAGES: &str = "__read-pages";
/// Measures what faults and touches cost; see [`calibrate`].
const CALIBRATE: &str = "__calibrate";

/// Where the kernel kills first when memory runs out: at a bench, not at a database.
const FIRST: &str = "1000";

/// Starts a child that works on a table and dies with the thread that calls this.
pub(crate) fn start_job(
    program: &Program,
    job: &Job,
    table: Stdio,
    control: Stdio,
) -> io::Result<Child> {
    let job = serde_json::to_string(job)?;
    dependent(program, READ_PAGES, job).stdin(table).stdout(control).spawn()
}

/// Starts a child that calibrates and prints JSON.
pub(crate) fn start_calibration(program: &Program, spec: &calibrate::Spec) -> io::Result<Child> {
    let mut command = dependent(program, CALIBRATE, serde_json::to_string(spec)?);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// A child in a process group of its own, so that Ctrl-C reaches the bench alone, which then
/// ends its children in order.
fn dependent(program: &Program, role: &str, spec: String) -> Command {
    let mut command = program.part(role);
    command.arg(std::process::id().to_string()).arg(spec).process_group(0);
    command
}

/// Runs a hidden subcommand when the arguments (the program's name first) ask for one. To be
/// called first of all by every program that is used as a [`Program`]; the guard is among them.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(code) = guard::main(arguments.iter().cloned()) {
        return Some(code);
    }
    let mut arguments = arguments.into_iter().skip(1);
    let role = arguments.next()?;
    let ended = match role.to_str()? {
        READ_PAGES => read_pages(arguments),
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
