//! Benchmarks with factors, levels and paired trials, and what they need of the host.
//!
//! A program that runs them must call [`child::main`] first of all: the bench starts it again
//! for its readers, its guard and its calibration.

pub mod calibrate;
pub mod child;
pub mod interrupt;
mod memory;
pub mod pages;
pub mod progress;
mod smaps;

pub use calibrate::{Budget, calibrate, calibrate_in_child};
pub use interrupt::{Interrupt, Interrupted, is_ignored};
pub use progress::{Nobody, Observer, Progress};

use std::path::Path;
use untax_changes::{Lock, Program, Tree};
use untax_core::database::Cgroup;
use untax_core::host::HostFacts;
use untax_host::{Host, cgroup};

/// One experiment, as help and documentation list it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// Its name on the command line; also that of its file here.
    pub id: &'static str,
    /// What it shows.
    pub summary: &'static str,
    /// What it may not do without.
    pub privilege: &'static str,
    /// The oldest kernel it works on.
    pub minimum_kernel: &'static str,
    /// What it costs the host while it runs.
    pub cost: &'static str,
}

/// All experiments.
pub const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "pages",
    summary: "what page size is worth on this machine: reads by key over shared memory",
    privilege: "root, to reserve huge pages; without root only pages that are free already",
    // memfd_create with MFD_HUGETLB and sealing of huge pages.
    minimum_kernel: "4.16",
    cost: "memory for the tables (by default up to a quarter of what is available for each page \
           size) and as many CPUs as there are connections",
}];

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
