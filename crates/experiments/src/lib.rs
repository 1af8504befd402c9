//! Benchmarks with factors, levels and paired trials, and what they need of the host.
//!
//! A program that runs them must call [`child::main`] first of all: the bench starts it again
//! for its readers, its guard and its calibration.

pub mod calibrate;
pub mod child;
mod experiment;
mod list;
mod memory;
pub mod pages;
pub mod progress;
mod smaps;

pub use calibrate::{Budget, calibrate, calibrate_in_child};
pub use experiment::{
    BenchResult, Context, Ending, Experiment, ExperimentError, Listener, RunResult,
};
pub use list::EXPERIMENTS;
pub use progress::{Nobody, Observer, Progress};

use std::path::Path;
use untax_changes::{Lock, Program, Tree};
use untax_core::database::Cgroup;
use untax_core::host::HostFacts;
use untax_host::{Host, cgroup};
use untax_trials::Interrupt;

/// The machine that a result holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processor.
    pub cpu_model: String,
    /// The kernel.
    pub kernel_release: String,
}

impl Machine {
    /// The machine of these facts.
    pub fn of(host: &HostFacts) -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            cpu_model: host.cpu.value().map_or_else(unknown, |cpu| cpu.model.clone()),
            kernel_release: host.kernel.value().map_or_else(unknown, |k| k.release.clone()),
        }
    }
}

/// The control group of this process, where it can be told.
pub fn own_cgroup(host: &HostFacts) -> Option<Cgroup> {
    let layout = host.cgroup.value()?;
    cgroup::of_process(&Host::live(), layout, std::process::id()).into_value()
}

/// What an experiment works with.
#[derive(Debug)]
pub struct Bench<'a> {
    /// Whose hidden subcommands its children run.
    pub program: &'a Program,
    /// The kernel's files.
    pub tree: &'a Tree,
    /// The state directory, where prior values of what is changed are kept.
    pub state: &'a Path,
    /// The right to bench.
    pub lock: &'a Lock,
    /// The machine, for the result.
    pub machine: &'a Machine,
    /// Our own control group, whose limits hold for the bench; `None` where it is not known.
    pub cgroup: Option<&'a Cgroup>,
    /// The result's id.
    pub run: &'a str,
    /// What to spend on a calibration before the bench; `None`: make none.
    pub calibration: Option<Budget>,
    /// The wish to stop.
    pub interrupt: Interrupt,
}
