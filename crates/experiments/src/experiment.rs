//! What an experiment is to the command line: an entry that can be listed, run and reported.

use crate::child::HiddenCommand;
use crate::progress::Progress;
use std::error::Error;
use std::io;
use std::path::Path;
use untax_core::Calibration;
use untax_core::bench::WarningKind;
use untax_report::html::part::Part;
use untax_report::terminal::Style;

/// One experiment: `untax bench ID` and all that is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Its name on the command line; also that of its folder here.
    pub id: &'static str,
    /// What it shows.
    pub summary: &'static str,
    /// What it may not do without.
    pub privilege: &'static str,
    /// The oldest kernel it works on.
    pub minimum_kernel: &'static str,
    /// What it costs the host while it runs.
    pub cost: &'static str,
    /// The schema of its results, such as `untax.bench.pages/1`.
    pub schema: &'static str,
    /// Every kind of warning that its results may carry.
    pub warnings: &'static [WarningKind],
    /// Its help and the arguments that it alone has.
    pub command: fn() -> clap::Command,
    /// The hidden subcommands that its children run.
    pub children: &'static [HiddenCommand],
    /// Runs it with these arguments. An interrupted run gives what was measured so far.
    pub run: fn(&clap::ArgMatches, &mut Context) -> RunResult,
    /// Reads a saved result of its schema.
    pub read: fn(serde_json::Value) -> serde_json::Result<Box<dyn BenchResult>>,
}

/// What the command line gives an experiment beside its arguments.
pub struct Context<'a> {
    /// The state directory, where journals of changed settings lie.
    pub state: &'a Path,
    /// The id of the result.
    pub run: &'a str,
    /// Gets progress, partial results and notes.
    pub listener: &'a mut dyn Listener,
}

/// Shows a person how an experiment goes, and saves what it gives.
pub trait Listener {
    /// The experiment did something; called often.
    fn progress(&mut self, progress: &Progress);
    /// The result so far; called after every trial, to be saved.
    fn partial(&mut self, result: &dyn BenchResult);
    /// A sentence for the person who started it.
    fn note(&mut self, text: &str);
    /// What faults and touches cost here, measured for the checks to come.
    fn calibrated(&mut self, calibration: &Calibration);
}

/// The result of an experiment, new or saved.
pub trait BenchResult {
    /// The result as JSON for scripts, with its schema.
    fn json(&self) -> serde_json::Result<String>;
    /// The result as a screen of text.
    fn terminal(&self, style: Style) -> String;
    /// The result as a part of a web page.
    fn html(&self) -> Part;
    /// How the run ended.
    fn ending(&self) -> Ending;
}

/// What a run gives back.
pub type RunResult = Result<Box<dyn BenchResult>, ExperimentError>;

/// How a run ended; the exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All trials are done, and no guard failed.
    Clean,
    /// All trials are done, and a guard that was asked for failed.
    GuardFailed,
    /// The run was interrupted.
    Interrupted,
}

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The arguments make no sense together.
    #[error("{0}")]
    Usage(String),
    /// Signals cannot be caught.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// Whatever else the experiment says.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl ExperimentError {
    /// An error of the experiment's own.
    pub fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }
}
