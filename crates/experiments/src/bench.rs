//! What a bench gets from the program that runs it.

use crate::calibrate::Budget;
use crate::machine::Machine;
use std::path::Path;
use untax_changes::{Lock, Program, Tree};
use untax_core::database::Cgroup;
use untax_trials::Interrupt;

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
