//! Recorded truth: windows of real servers with the gains that were measured, replayed through the rules of today.

mod cases;
mod record;
mod replay;
mod table;

use clap::Subcommand;

pub use table::document;

/// Recorded windows with measured gains.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// Record cases anew on scratch servers of this machine: some two minutes each. Then run `cargo xtask docs`.
    Record(record::Options),
}

impl Tool {
    /// Runs the tool.
    pub fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Record(options) => record::run(options),
        }
    }
}
