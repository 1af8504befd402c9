//! Benches of whole commands: the figures of docs/results/, measured anew.
//!
//! They measure the release build of `untax` beside this program, on scratch servers. Those that compare
//! pairs of trials go through them with `untax_trials` and save each: a bench that was stopped goes on
//! when it is started again.

mod causes;
mod engines;
mod fleet;
mod gains;
mod output;
mod overhead;
mod paired;
mod prediction;
pub mod program;
mod record;
mod snapshot;
mod verdicts;
mod workloads;

use clap::Subcommand;

/// Figures of docs/results/.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// The predicted against the measured gain of huge pages, for each load of pgbench.
    Prediction(prediction::Options),
    /// The predicted against the measured gain of removing each cause that the lab can inject.
    Causes(causes::Options),
    /// Servers of other versions than the machine's: time unaccounted for, predicted and measured gains.
    Engines(engines::Options),
    /// The throughput of pgbench and redis-benchmark beside checks, against without.
    Overhead(overhead::Options),
    /// What untax verify says where nothing changed, and how surely it would find a tenth.
    Verdicts(verdicts::Options),
    /// What checks say beside loads that people run, and what huge pages bring these.
    Workloads(workloads::Options),
    /// What one look at a busy host costs: time, memory.
    Snapshot(snapshot::Options),
    /// A simulated fleet of agents before a real Prometheus: series, memory, how long untax fleet takes.
    Fleet(fleet::Options),
}

impl Tool {
    /// Runs the bench.
    pub fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Prediction(options) => prediction::run(options),
            Self::Causes(options) => causes::run(options),
            Self::Engines(options) => engines::run(options),
            Self::Overhead(options) => overhead::run(options),
            Self::Verdicts(options) => verdicts::run(options),
            Self::Workloads(options) => workloads::run(options),
            Self::Snapshot(options) => snapshot::run(options),
            Self::Fleet(options) => fleet::run(options),
        }
    }
}
