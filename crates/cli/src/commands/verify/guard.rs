//! The guard of a verification: a process of its own that leaves the host as it was, should the
//! verification be killed.
//!
//! It holds one end of a pipe whose other end the verification alone holds, and hears there what it
//! would have to do. Whatever ends the verification closes the pipe.

use super::host::{restart, undo};
use super::shell;
use crate::commands::apply;
use crate::screen::say;
use crate::state::State;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use untax_changes::Receipt;
use untax_core::Plan;
use untax_core::receipt::Status;

/// The hidden subcommand that is the guard.
pub const PART: &str = "__guard-verify";

/// The host is not as it was, from now on.
const CHANGED: u8 = b'!';
/// The database is being restarted, and may be down until another word is heard.
const RESTARTING: u8 = b'r';
/// It is as it was; what the workload made is still there.
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

/// What is to be so afterwards, in whatever way a verification ends.
#[derive(Serialize, Deserialize)]
pub struct Duty {
    /// The state directory, where the receipts are.
    pub state: PathBuf,
    /// The plan that is tried.
    pub plan: Plan,
    /// Whether it is applied before and afterwards.
    pub standing: bool,
    /// The shell command that restarts the database.
    pub restart: Option<String>,
    /// The shell command that removes what the workload made; empty if that is nothing.
    pub clean: String,
}

/// A guard at its post. It stands down when this is dropped, if it heard that it may.
pub struct Guard {
    /// There until this is dropped.
    pipe: Option<ChildStdin>,
    process: Child,
}

impl Guard {
    /// Starts the guard; it has its duty when this returns.
    pub fn post(duty: &Duty) -> anyhow::Result<Self> {
        let start = || -> io::Result<Self> {
            let mut command = Command::new("/proc/self/exe");
            let command = command.arg0("untax").arg(PART);
            let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
            let mut guard = Self { pipe: process.stdin.take(), process };
            guard.tell(&serde_json::to_vec(duty)?)?;
            guard.tell(b"\n")?;
            Ok(guard)
        };
        start().context("the guard of the host did not start; nothing was changed")
    }

    /// One that has no duty, and does nothing.
    #[cfg(test)]
    pub fn idle() -> io::Result<Self> {
        let mut process =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        Ok(Self { pipe: process.stdin.take(), process })
    }

    fn tell(&mut self, words: &[u8]) -> io::Result<()> {
        self.pipe.as_mut().map_or(Ok(()), |pipe| pipe.write_all(words))
    }

    /// To be told before a change: without a guard nothing is changed.
    pub fn changing(&mut self) -> anyhow::Result<()> {
        self.tell(&[CHANGED]).context("the guard of the host is gone; nothing more is changed")
    }

    /// To be told before the database is restarted.
    pub fn restarting(&mut self) -> anyhow::Result<()> {
        self.tell(&[RESTARTING]).context("the guard of the host is gone; nothing more is changed")
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
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.pipe = None;
        // It says itself what it could not do.
        let _ = self.process.wait();
    }
}

/// The guard itself: the whole life of its process.
pub fn main() -> ExitCode {
    match keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "untax: after the verification ended: {error:#}");
            ExitCode::from(crate::COULD_NOT)
        }
    }
}

fn keep() -> anyhow::Result<()> {
    untax_experiments::child::outlive()?;
    let mut pipe = BufReader::new(io::stdin());
    let mut duty = String::new();
    pipe.read_line(&mut duty)?;
    let duty: Duty = serde_json::from_str(&duty)?;
    let mut words = Vec::new();
    pipe.read_to_end(&mut words)?;
    match words.last() {
        Some(&DONE) => Ok(()),
        Some(&CHANGED) => both(restore(&duty, false), clean(&duty)),
        Some(&RESTARTING) => both(restore(&duty, true), clean(&duty)),
        _ => clean(&duty),
    }
}

/// Neither error hides the other.
fn both(first: anyhow::Result<()>, second: anyhow::Result<()>) -> anyhow::Result<()> {
    match (first, second) {
        (Err(first), Err(second)) => Err(anyhow::anyhow!("{first:#}; {second:#}")),
        (first, second) => first.and(second),
    }
}

/// Leaves the plan as it was, and the database running. Where not all can be put back, a database that
/// runs is left alone, as it might not start with half of a plan, and one that may be down is started.
fn restore(duty: &Duty, may_be_down: bool) -> anyhow::Result<()> {
    let there = put_back(duty);
    if there.is_err() && !may_be_down {
        return there;
    }
    both(there, persist(RESTARTS, RESTART_PAUSE, || restart(duty.restart.as_deref())))
}

/// Undoes what is applied of the plan, wholly or half way, and applies it anew if it was before.
fn put_back(duty: &Duty) -> anyhow::Result<()> {
    let state = State::new(Some(duty.state.clone()));
    let (receipts, damaged) = Receipt::all(&state.receipts()?);
    for error in damaged {
        say(&format!("untax: {:#}", anyhow::Error::from(error)));
    }
    let of_plan = receipts.into_iter().filter(|receipt| receipt.header().plan == duty.plan.plan);
    let left = of_plan.filter(|receipt| receipt.status() != Status::Reverted);
    let mut undone = Ok(());
    // The newest first: each tells what was before it.
    for mut receipt in left.rev() {
        undone = both(undone, undo(&mut receipt));
    }
    undone?;
    if duty.standing {
        apply::execute(&duty.plan, &state, &AtomicBool::new(false), false, |_| {})?;
    }
    Ok(())
}

fn clean(duty: &Duty) -> anyhow::Result<()> {
    if duty.clean.is_empty() {
        return Ok(());
    }
    persist(TRIES, PAUSE, || shell(&duty.clean).map(drop))
        .context("what the workload made is still there")
}

/// Tries something until it is done, so often at most; the last try says why it is not.
fn persist(
    tries: u32,
    pause: Duration,
    attempt: impl Fn() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
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
    use crate::commands::apply::tests::{applied, makes, plan_of};
    use std::cell::Cell;
    use std::fs;
    use untax_core::plan::Effect;

    #[test]
    fn where_not_all_is_put_back_a_database_that_may_be_down_is_restarted_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other, restarted] =
            ["file", "other", "restarted"].map(|name| folder.path().join(name));
        let directory = folder.path().join("state");
        let state = State::new(Some(directory.clone()));
        let plan = plan_of(vec![makes(&file, Effect::Now), makes(&other, Effect::Now)]);
        applied(&plan, &state, true);
        fs::write(&file, "theirs\n").unwrap();
        let duty = Duty {
            state: directory,
            plan,
            standing: false,
            restart: Some(format!("touch {}", restarted.display())),
            clean: String::new(),
        };
        for may_be_down in [false, true] {
            let said = restore(&duty, may_be_down).unwrap_err().to_string();
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
                anyhow::ensure!(made.get() == good, "not yet");
                Ok(())
            });
            (made.get(), done.is_ok())
        };
        assert_eq!(tries(1), (1, true));
        assert_eq!(tries(3), (3, true));
        assert_eq!(tries(9), (3, false));
    }
}
