//! Programs that are not to outlive this one.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// A command that the kernel ends with this process, also when that is killed.
pub fn mortal(program: impl AsRef<OsStr>) -> Command {
    ended_by("KILL", program)
}

/// One that puts back what it changed before it ends.
pub fn asked_to_end(program: impl AsRef<OsStr>) -> Command {
    ended_by("TERM", program)
}

fn ended_by(signal: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal]).arg(program).stdin(Stdio::null());
    command
}
