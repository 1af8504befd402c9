//! Where a database is on a machine with several NUMA nodes.

use crate::{Bytes, Reading};
use serde::{Deserialize, Serialize};

/// Where the memory of a database is, and where its threads run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Placement {
    /// Its memory on each node that has some of it.
    pub memory: Reading<Vec<OnNode>>,
    /// Where that was read.
    pub source: String,
    /// Its threads, as many as were looked at.
    pub tasks: Vec<Task>,
    /// What NUMA balancing did to it so far, where its control group counts that.
    pub balancing: Reading<Balancing>,
}

/// Memory on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OnNode {
    /// The node.
    pub node: u32,
    /// How much.
    pub bytes: Bytes,
}

/// One thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Task {
    /// Its number.
    pub id: u32,
    /// The CPU that it is on, or was on last.
    pub cpu: u32,
    /// Its time on CPU so far, clock ticks.
    pub ticks: u64,
}

/// What NUMA balancing did to one control group so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Balancing {
    /// Faults made to see who touches a page.
    pub hint_faults: u64,
    /// Base pages moved to another node.
    pub pages_migrated: u64,
}
