//! Memory pressure, of the whole machine and of its control groups.

use crate::{Reading, Seconds};
use serde::{Deserialize, Serialize};

/// What the kernel counted of reclaim and of moving pages between NUMA nodes since boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// The memory of one control group: counted so far in a snapshot, grown by in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
