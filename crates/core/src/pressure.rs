//! Memory pressure, of the whole machine and of its control groups.

use crate::{Reading, Seconds};
use serde::{Deserialize, Serialize};

/// What the kernel counted of reclaim and of moving pages between NUMA nodes since boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VmCounts {
    /// Allocations that had to reclaim memory first, because the machine had none free.
    pub allocation_stalls: Reading<u64>,
    /// Faults that NUMA balancing made to see who touches a page.
    pub numa_hint_faults: Reading<u64>,
    /// Those of them by a CPU of the page's own node.
    pub numa_hint_faults_local: Reading<u64>,
    /// Base pages that NUMA balancing moved to another node.
    pub numa_pages_migrated: Reading<u64>,
}

/// For how long tasks were held up so far, by what: the kernel's pressure stall information. It tells
/// of all tasks of a control group, or of the machine, and not of one database's; it is an average over
/// the CPUs, in which a thread that moves between them counts for less than it waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stalls {
    /// For want of a CPU, limits of CPU time included.
    pub cpu: Reading<Stalled>,
    /// For disks.
    pub io: Reading<Stalled>,
    /// For memory: reclaim, and reading again what was evicted too early.
    pub memory: Reading<Stalled>,
}

/// For how long tasks were held up so far by one thing, in seconds of the clock and not of each task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stalled {
    /// At least one was.
    pub some_s: Seconds,
    /// All that had something to do were; absent where the kernel does not count it.
    pub full_s: Reading<Seconds>,
}

/// The same of one control group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GroupStalls {
    /// The group's path below the mount.
    pub cgroup: String,
    /// Those of its tasks, and of the groups below it.
    pub stalls: Stalls,
}

/// The shares of a window (0..1) in which tasks were held up: what can be said without tracing. No tax
/// follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pressure {
    /// Whose tasks: `group PATH`, the database's own or the nearest above it that counts, or `machine`.
    /// Tasks of others are among them.
    pub scope: String,
    /// At least one task waited for a CPU, or was held back by a limit.
    pub cpu_some: Reading<f64>,
    /// All that had something to do did.
    pub cpu_full: Reading<f64>,
    /// At least one waited for a disk.
    pub io_some: Reading<f64>,
    /// All that had something to do did.
    pub io_full: Reading<f64>,
    /// At least one waited for memory.
    pub memory_some: Reading<f64>,
    /// All that had something to do did.
    pub memory_full: Reading<f64>,
}

/// The memory of one control group: counted so far in a snapshot, grown by in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GroupMemory {
    /// The group's path below the mount.
    pub cgroup: String,
    /// How often its own limit was in the way, that of no group below it.
    pub at_limit: u64,
    /// Memory that its own processes took, in base pages, what was taken back included; in pieces
    /// of `pages_each` where the kernel counts pieces.
    pub taken_pages: u64,
    /// How many base pages a piece has on average: 1 where pages are counted, and in a window.
    pub pages_each: f64,
    /// Pages that its own processes read again, soon after they were evicted.
    pub read_again_pages: Reading<u64>,
    /// For how long some of its tasks waited for memory; where the kernel says so for each group.
    pub stalled_s: Reading<Seconds>,
}
