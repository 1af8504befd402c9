//! Benches of whole commands: the figures of docs/results/, measured anew.
//!
//! They measure the release build of `untax` beside this program, on scratch servers, with
//! interleaved trials, and save after each trial: run again with the same output file, a bench
//! goes on where it was stopped.

mod causes;
mod gains;
mod overhead;
mod prediction;
mod snapshot;
mod trials;
mod verdicts;

use crate::child::{asked_to_end, mortal};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Figures of docs/results/.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// The predicted against the measured gain of huge pages, for each load of pgbench.
    Prediction(prediction::Options),
    /// The predicted against the measured gain of removing each cause that the lab can inject.
    Causes(causes::Options),
    /// The throughput of pgbench and redis-benchmark beside checks, against without.
    Overhead(overhead::Options),
    /// What untax verify says where nothing changed, and how surely it would find a tenth.
    Verdicts(verdicts::Options),
    /// What one look at a busy host costs: time, memory.
    Snapshot(snapshot::Options),
}

impl Tool {
    /// Runs the bench.
    pub fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Prediction(options) => prediction::run(options),
            Self::Causes(options) => causes::run(options),
            Self::Overhead(options) => overhead::run(options),
            Self::Verdicts(options) => verdicts::run(options),
            Self::Snapshot(options) => snapshot::run(options),
        }
    }
}

/// Where results go.
#[derive(Debug, Args)]
struct Output {
    /// Folder of the results: NAME.json with every trial, NAME.md with the table. Those of docs/results/
    /// hold words of ours as well, so nothing writes there by itself
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
}

impl Output {
    /// Makes the folder, so that a result of many minutes does not fail at its end.
    fn prepare(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.out).with_context(|| self.out.display().to_string())
    }

    /// Writes one result.
    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.out.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

/// The release build of untax, and a state directory that is removed with this value.
struct Untax {
    program: PathBuf,
    state: tempfile::TempDir,
}

impl Untax {
    /// Finds the program beside this one, or in the release folder next to its own.
    fn find() -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("where is this program?")?;
        let folder =
            own.parent().and_then(Path::parent).context("where was this program built?")?;
        let program = folder.join("release/untax");
        if !program.is_file() {
            bail!("{} is missing; cargo build --release -p untax", program.display());
        }
        Ok(Self { program, state: tempfile::tempdir()? })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(asked_to_end(&self.program), arguments)
    }

    /// One that changes nothing on the host, so that it can be killed at any moment.
    fn mortal_command(&self, arguments: &[&str]) -> Command {
        self.command_of(mortal(&self.program), arguments)
    }

    fn command_of(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.arg("--state-dir").arg(self.state.path()).args(arguments);
        command.stderr(Stdio::null());
        command
    }

    /// Starts a check of one server; [`finished`] gives its result.
    fn start_check(&self, pid: u32, window: &str) -> anyhow::Result<Child> {
        let pid = pid.to_string();
        let arguments = ["check", "--json", "--pid", &pid, "--window", window];
        Ok(self.command(&arguments).stdout(Stdio::piped()).spawn()?)
    }
}

/// The result of a check that was started before.
fn finished(check: Child) -> anyhow::Result<Value> {
    let output = check.wait_with_output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the check ended with {} and no result", output.status))
}

/// What a check of one server said of a rule, and what it stands on.
fn essence(check: &Value, rule: &str) -> Value {
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
