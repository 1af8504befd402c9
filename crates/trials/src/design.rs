//! What is compared, and in which order.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// One of the alternatives that are compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arm {
    /// Its name, such as `2m` or `with the plan`.
    pub name: String,
    /// All that is set in it, as text: another configuration is another arm.
    pub configuration: String,
    /// Whether it is prepared anew in each block; otherwise it stays as it is until another arm's turn.
    pub restart: bool,
    /// About how long it takes to prepare it, for the time left; corrected by what it really takes.
    pub preparing: Duration,
    /// What is watched beside its trials.
    pub watch: Watch,
}

impl Arm {
    /// An arm whose name says all that is set.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// The largest share of CPU time that may be stolen. A tenth is more than the effects that verdicts are
/// asked for (`untax_core::power::FACTOR`), and it comes in bursts, so pairs do not cancel it out. Quiet
/// virtual machines show less than 2 %.
pub const MOST_STEAL: f64 = 0.10;

/// What is watched beside a trial, as well as the clocks and the length of the trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    /// The largest share of the machine's CPU time that a hypervisor may take.
    pub most_steal: f64,
    /// Directories of control groups that must not be throttled: none that the arm itself limits.
    pub groups: Vec<String>,
    /// What must not be used up, because it is not what is measured.
    pub spare: Vec<Resource>,
    /// The most CPUs that programs may use which this process did not start; any number where `None`.
    pub most_others: Option<f64>,
}

impl Default for Watch {
    fn default() -> Self {
        Self { most_steal: MOST_STEAL, groups: Vec::new(), spare: Vec::new(), most_others: None }
    }
}

/// Something that can be used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// The time of all CPUs.
    Cpu,
    /// A network interface by its name, both directions.
    Link(String),
    /// A block device by its name in `/proc/diskstats`.
    Disk(String),
}

/// What each arm is measured in: a workload, a number of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// How long a trial is asked to take, with what comes before it counts; `None` when nobody can tell.
    pub length: Option<Duration>,
}

/// The place of one trial in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// The block: trials of the same block and cell are compared with each other.
    pub block: u32,
    /// The arm's place in the design.
    pub arm: usize,
    /// The cell's place in the design.
    pub cell: usize,
    /// Whether it repeats another trial of the same block, arm and cell, to show what noise alone does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// The trials of every arm, close in time. Between two blocks it is decided whether to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The arms that are prepared at the same time, because their trials alternate; none when each
    /// arm is prepared for its own trials alone.
    pub together: Vec<usize>,
    /// The trials in order.
    pub slots: Vec<Slot>,
}

/// What is compared, and in which order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Design {
    /// What the order was drawn from.
    pub seed: u64,
    /// The alternatives.
    pub arms: Vec<Arm>,
    /// What each is measured in.
    pub cells: Vec<Cell>,
    /// The order.
    pub blocks: Vec<Block>,
}

impl Design {
    /// A design of so many blocks in which each visit of an arm measures all cells, as [`visits`] orders
    /// them.
    pub fn of_visits(seed: u64, arms: Vec<Arm>, cells: Vec<Cell>, blocks: u32) -> Self {
        let blocks = visits(arms.len(), cells.len(), blocks, seed);
        Self { seed, arms, cells, blocks }
    }

    /// All trials in order.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.blocks.iter().flat_map(|block| &block.slots)
    }
}

/// Blocks in which each arm is visited once and all cells are measured in that visit. Every second block
/// visits the arms in the reverse order of the block before: with two arms ABBA or BAAB by chance. So drift
/// falls on all arms alike, an arm is not prepared again where two blocks meet, and its trials on both
/// sides of that border are neighbours that show what noise alone does.
pub fn visits(arms: usize, cells: usize, blocks: u32, seed: u64) -> Vec<Block> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut arms: Vec<usize> = (0..arms).collect();
    let mut cells: Vec<usize> = (0..cells).collect();
    let block = |block: u32| {
        if block.is_multiple_of(2) {
            rng.shuffle(&mut arms);
        } else {
            arms.reverse();
        }
        rng.shuffle(&mut cells);
        let slot = |arm: usize, cell: usize| Slot { block, arm, cell, repeat: false };
        let visit = |arm: &usize| cells.iter().map(|cell| slot(*arm, *cell)).collect::<Vec<_>>();
        Block { together: Vec::new(), slots: arms.iter().flat_map(visit).collect() }
    };
    (0..blocks).map(block).collect()
}

/// The order of trials of arms that are prepared together: cell by cell in random order, and in each the
/// arms in random order, which every second block reverses, so that each arm comes first as often as last.
#[derive(Debug, Clone)]
pub struct Interleaved {
    arms: Vec<usize>,
    cells: Range<usize>,
    orders: Vec<Vec<usize>>,
}

impl Interleaved {
    /// An order of these arms in these cells.
    pub fn new(arms: Vec<usize>, cells: Range<usize>) -> Self {
        Self { orders: vec![arms.clone(); cells.len()], arms, cells }
    }

    /// The trials of the next block. With two arms or more one trial is repeated, somewhere among those of
    /// the same cell; arms and cells take turns at that.
    pub fn block(&mut self, block: u32, rng: &mut fastrand::Rng) -> Vec<Slot> {
        let cells = self.cells.len();
        let mut turns: Vec<usize> = (0..cells).collect();
        rng.shuffle(&mut turns);
        let mut slots = Vec::new();
        for turn in turns {
            let order = &mut self.orders[turn];
            if block.is_multiple_of(2) {
                rng.shuffle(order);
            } else {
                order.reverse();
            }
            let slot =
                |arm: usize, repeat| Slot { block, arm, cell: self.cells.start + turn, repeat };
            let mut group: Vec<Slot> = order.iter().map(|arm| slot(*arm, false)).collect();
            if self.arms.len() > 1 && turn == block as usize % cells {
                let arm = self.arms[block as usize / cells % self.arms.len()];
                let place = rng.usize(..=group.len());
                group.insert(place, slot(arm, true));
            }
            slots.append(&mut group);
        }
        slots
    }
}

#[cfg(test)]
#[path = "design_tests.rs"]
mod tests;
