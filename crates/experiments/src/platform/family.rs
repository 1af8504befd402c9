//! What a family of alternatives must know to be measured.

use super::arm::Arm;
use super::cell::{Cell, Workload};
use super::error::Trouble;
use super::measured::Measured;
use untax_core::Bytes;
use untax_trials::Interrupt;

/// The alternatives of one layer, and the work that is measured on each.
pub trait Family {
    /// All alternatives, the baseline first, those that cannot run here with the reason.
    fn arms(&mut self) -> Vec<Arm>;

    /// All work, the most telling first, that which cannot be measured here with the reason.
    fn workloads(&mut self) -> Vec<Workload>;

    /// The most that one trial takes of the host.
    fn needs(&self) -> Needs;

    /// Brings up an arm for a cell, warm and ready. What was up before is gone already.
    fn start(
        &mut self,
        arm: &Arm,
        cell: &Cell,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Running>, Trouble>;
}

/// An arm that is up, for one cell; taken away when dropped.
pub trait Running {
    /// Measures once, for as long as the workload's trials take.
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble>;

    /// Directories of control groups whose `cpu.stat` tells whether the arm was throttled.
    fn groups(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a family takes of the host at most, at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Memory.
    pub memory: Bytes,
    /// Space in the directory for temporary files.
    pub disk: Bytes,
    /// Whether nothing works without root.
    pub root: bool,
}
