//! Hidden subcommands: the parts of a bench that run as children, started from its own program.

use rustix::process::{Pid, Signal};
use serde::Serialize;
use std::ffi::{CStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use untax_changes::Program;

/// The highest score: when memory runs out, the kernel kills a bench first, not a database.
const OOM_SCORE: &str = "1000";

/// A subcommand that no help lists. A bench names it in its entry and starts it for its children.
#[derive(Debug, Clone, Copy)]
pub struct HiddenCommand {
    /// Its name on the command line, such as `__read-pages`.
    pub name: &'static str,
    /// The name of its thread, as `ps` shows it.
    pub thread: &'static CStr,
    /// Does the work that the specification, in JSON, describes. Called in the child only.
    pub run: fn(&str) -> io::Result<()>,
}

impl HiddenCommand {
    /// A child that does the work of this specification and dies with the thread that starts it. It
    /// has a process group of its own: Ctrl-C reaches the bench alone, which then ends its children in
    /// order.
    pub(crate) fn command(&self, program: &Program, spec: &impl Serialize) -> io::Result<Command> {
        let spec = serde_json::to_string(spec)?;
        let mut command = program.part(self.name);
        command.arg(std::process::id().to_string()).arg(spec).process_group(0);
        Ok(command)
    }

    /// Does the work in the child, given the arguments behind the subcommand.
    pub(crate) fn main(&self, arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
        rustix::thread::set_name(self.thread)?;
        (self.run)(&depend(arguments)?)
    }
}

/// Ties this process to the bench that started it, and gives back its specification.
fn depend(mut arguments: impl Iterator<Item = OsString>) -> io::Result<String> {
    let mut text = || arguments.next().and_then(|a| a.into_string().ok());
    let bad = || io::Error::from(io::ErrorKind::InvalidInput);
    let parent: i32 = text().and_then(|pid| pid.parse().ok()).ok_or_else(bad)?;
    // 0: it runs in a container, which ends it. Its parent is unknown there, and may be gone at once: a runtime
    // that starts a program in a running container does not wait for it.
    if parent != 0 {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid().map(Pid::as_raw_pid) != Some(parent) {
            return Err(io::Error::other("the bench ended before its child began"));
        }
    }
    // Without the privilege to write it, the default remains.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    text().ok_or_else(bad)
}
