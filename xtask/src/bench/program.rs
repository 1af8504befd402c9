//! The program that is measured, and what it says.

use crate::child::{asked_to_end, mortal};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The release build of untax, and a state directory that is removed with this value.
pub struct Untax {
    /// The program.
    pub program: PathBuf,
    /// Its state directory.
    pub state: tempfile::TempDir,
}

impl Untax {
    /// Finds the program beside this one, or in the release folder next to its own.
    pub fn find() -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("where is this program?")?;
        let folder =
            own.parent().and_then(Path::parent).context("where was this program built?")?;
        let program = folder.join("release/untax");
        if !program.is_file() {
            bail!("{} is missing; cargo build --release -p untax", program.display());
        }
        Ok(Self { program, state: tempfile::tempdir()? })
    }

    /// A command that puts back what it changed before it ends.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(asked_to_end(&self.program), arguments)
    }

    /// One that changes nothing on the host, so that it can be killed at any moment.
    pub fn mortal_command(&self, arguments: &[&str]) -> Command {
        self.command_of(mortal(&self.program), arguments)
    }

    fn command_of(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.arg("--state-dir").arg(self.state.path()).args(arguments);
        command.stderr(Stdio::null());
        command
    }

    /// Starts a check of one server; [`finished`] gives its result.
    pub fn start_check(&self, pid: u32, window: &str) -> anyhow::Result<Child> {
        let pid = pid.to_string();
        let arguments = ["check", "--json", "--pid", &pid, "--window", window];
        Ok(self.command(&arguments).stdout(Stdio::piped()).spawn()?)
    }
}

/// The result of a check that was started before.
pub fn finished(check: Child) -> anyhow::Result<Value> {
    let output = check.wait_with_output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the check ended with {} and no result", output.status))
}

/// What a check of one server said of a rule, and what it stands on.
pub fn essence(check: &Value, rule: &str) -> Value {
    let database = &check["databases"][0];
    let findings = || database["findings"].as_array().into_iter().flatten();
    let finding = findings().find(|finding| finding["rule"] == rule);
    json!({
        "gain": finding.map(|f| &f["gain"]),
        "tax": finding.map(|f| &f["tax"]),
        "evidence": finding.map(|f| &f["evidence"]),
        "found": findings().map(|f| &f["rule"]).collect::<Vec<_>>(),
        "time": database["time"],
        "page_table_bytes": database["memory"]["page_table_bytes"],
        "unmeasured": database["unmeasured"],
        "self": check["self"],
    })
}
