//! The published table's cells, in the model.

use super::machine::{Load, Machine, Mode, simulate};
use crate::policy::{Ratio, Rule, Tunables};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which machine the model is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Two nodes of 22 CPUs: that of the published table.
    Two22,
    /// Two nodes of 64 CPUs.
    Two64,
}

impl Size {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Two22 => "2x22",
            Self::Two64 => "2x64",
        }
    }

    fn machine(self) -> Machine {
        match self {
            Self::Two22 => Machine { nodes: 2, cores: 22 },
            Self::Two64 => Machine { nodes: 2, cores: 64 },
        }
    }
}

/// How long each cell is simulated.
const LENGTH: Duration = Duration::from_secs(3);

/// By how much a piece of work of a database takes longer when all that it shares is on another node. It gives
/// the published order of modes; it was measured nowhere.
const DATABASE: f64 = 0.16;
/// The same of `hackbench`, which passes short messages.
const HACKBENCH: f64 = 0.03;

/// Tasks of a group of `hackbench`: 20 senders and 20 receivers.
const GROUP: usize = 40;

/// One cell of the table: throughput over that of no affinity, in percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    /// `hackbench` or `database`.
    pub load: String,
    /// Groups, or users, of each instance.
    pub size: usize,
    /// How many instances are busy.
    pub instances: usize,
    /// Soft affinity of the kernel patch with 100:1 and 5:4.
    pub wake_100_1_percent: f64,
    /// The same with 5:4.
    pub wake_5_4_percent: f64,
    /// The policy of `untax steer`.
    pub policy_percent: f64,
    /// Hard affinity.
    pub hard_percent: f64,
}

/// Every cell of the published table in the model.
pub fn table(size: Size) -> Vec<Row> {
    let scale = f64::from(size.machine().cores) / 22.0;
    let hackbench = [4, 8, 16, 32].map(|groups| (Kind::Hackbench, groups));
    let database = [16.0, 24.0, 32.0].map(|users: f64| (Kind::Database, (users * scale) as usize));
    let cells: Vec<(Kind, usize)> = hackbench.into_iter().chain(database).collect();
    let both = [2, 1].into_iter().flat_map(|n| cells.iter().map(move |cell| (*cell, n)));
    both.map(|((kind, load), instances)| row(size.machine(), kind, load, instances)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Database,
    Hackbench,
}

impl Kind {
    fn load(self, size: usize) -> Load {
        match self {
            // Users that wait a quarter of the time for something else than a CPU.
            Self::Database => {
                Load { tasks: size, work_us: 1000.0, pause_us: 330.0, coherence: DATABASE }
            }
            Self::Hackbench => {
                Load { tasks: size * GROUP, work_us: 300.0, pause_us: 10.0, coherence: HACKBENCH }
            }
        }
    }
}

fn row(machine: Machine, kind: Kind, size: usize, instances: usize) -> Row {
    let load = kind.load(size);
    let rate = |mode| simulate(machine, load, instances, mode, LENGTH).work_per_s;
    let none = rate(Mode::None);
    let percent = |mode| (rate(mode) / none - 1.0) * 100.0;
    let ratio = |preferred, allowed| Mode::Wake(Rule::Above(Ratio { preferred, allowed }));
    // A cell is shorter than a person's hold and trial would be.
    let tunables = Tunables {
        rule: Rule::Full,
        hold: Duration::from_millis(200),
        judge: Duration::from_millis(300),
    };
    Row {
        load: if kind == Kind::Database { "database" } else { "hackbench" }.to_owned(),
        size,
        instances,
        wake_100_1_percent: percent(ratio(100, 1)),
        wake_5_4_percent: percent(ratio(5, 4)),
        policy_percent: percent(Mode::Policy(tunables)),
        hard_percent: percent(Mode::Hard),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(kind: Kind, size: usize, instances: usize) -> Row {
        row(Size::Two22.machine(), kind, size, instances)
    }

    #[test]
    fn two_busy_databases_gain_by_partitions_and_the_policy_keeps_them() {
        for users in [16, 32] {
            let row = cell(Kind::Database, users, 2);
            assert!(row.hard_percent > 1.0, "{row:?}");
            assert!(row.policy_percent > row.hard_percent - 2.0, "{row:?}");
            assert!(row.wake_100_1_percent > 0.0, "{row:?}");
        }
    }

    #[test]
    fn one_busy_database_of_many_users_loses_by_a_hard_partition_only() {
        let row = cell(Kind::Database, 48, 1);
        assert!(row.hard_percent < -10.0, "{row:?}");
        assert!(row.policy_percent > row.hard_percent + 10.0, "{row:?}");
        assert!(row.wake_5_4_percent > row.hard_percent + 10.0, "{row:?}");
    }

    #[test]
    fn one_busy_hackbench_loses_most_by_a_hard_partition() {
        let row = cell(Kind::Hackbench, 4, 1);
        assert!(row.hard_percent < -40.0, "{row:?}");
        assert!(row.policy_percent > row.hard_percent + 20.0, "{row:?}");
        assert!(row.wake_5_4_percent >= row.wake_100_1_percent - 2.0, "{row:?}");
        assert!(row.wake_100_1_percent > row.hard_percent + 20.0, "{row:?}");
    }
}
