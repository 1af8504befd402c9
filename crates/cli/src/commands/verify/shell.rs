//! The shell commands that the user gave.

use anyhow::bail;
use std::process::{Command, Stdio};

/// Runs a command and gives what it printed. A status other than 0 is an error.
pub fn shell(command: &str) -> anyhow::Result<String> {
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", command]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command} ended with {}: {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
