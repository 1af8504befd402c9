//! Programs that are not to outlive this one.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// A command that the kernel ends with this process, also when that is killed.
pub fn mortal(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program).stdin(Stdio::null());
    command
}
