//! The command line. Help, completions, the man page and docs/command-line.md come from here.

use crate::commands::{
    apply, bench_pages, capture, check, compare, explain, lab, plan, report, undo, verify, watch,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// What does the platform take from my database, what do I change, and did it work?
///
/// untax attaches to a live database and says what each layer under it costs, in percent of the
/// database's own time, with the interval and the method of every number. What cannot be measured
/// is called unmeasured, with the reason. Nothing on the host is changed by a check.
#[derive(Debug, Parser)]
#[command(
    name = "untax",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 clean, 1 findings, 2 could not do it, 3 bad usage.\n\n\
                  Examples:\n  untax check                      every database on this host\n  \
                  untax check --pid 4012 --json    one of them, for scripts\n  \
                  untax explain small-pages        what a finding means and how to fix it\n  \
                  untax bench pages                what page size is worth on this machine"
)]
pub struct Args {
    /// Where runs, calibrations and journals are kept [default: /var/lib/untax for root,
    /// ~/.local/state/untax for others]
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what the platform takes from the databases on this host
    Check(check::Args),
    /// Show what the platform takes from the databases, window after window
    Watch(watch::Args),
    /// Say what a rule means, how it is measured and how to fix it
    Explain(explain::Args),
    /// Say what to change, from a saved check; changes nothing
    Plan(plan::Args),
    /// Do what a plan says, so that it can be undone
    Apply(apply::Args),
    /// Put back what was applied
    Undo(undo::Args),
    /// Prove or disprove a plan by trials with and without it
    Verify(verify::Args),
    /// Say what became of each cause between two checks
    Compare(compare::Args),
    /// Write saved results as one web page
    Report(report::Args),
    /// Measure what the platform is worth on this machine
    #[command(subcommand)]
    Bench(Bench),
    /// Save what a check reads here, without secrets, to replay elsewhere
    Capture(capture::Args),
    /// Cause a problem on a scratch database, and see it found
    #[command(subcommand)]
    Lab(Lab),
}

/// Benchmarks of the platform.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// What page size is worth: a table read by primary key over shared memory
    Pages(bench_pages::Args),
}

/// Problems made on purpose, on a scratch database that is started for it.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// List the causes, the engines they make sense for, and what this machine lacks for them
    List(lab::list::Args),
    /// Put one cause on one engine: check, remove it, check again, and measure the gain
    Run(lab::run::Args),
    /// Put many causes on many engines, in random order, and make a table of what was found
    Matrix(lab::matrix::Args),
}
