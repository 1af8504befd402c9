//! All facts at one moment.

use crate::Seconds;
use crate::database::Database;
use crate::host::HostFacts;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// All facts of the host and its databases at one moment; plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken (wall clock).
    pub taken_at: Timestamp,
    /// Seconds of the monotonic clock since boot: differences between snapshots are exact.
    pub uptime_s: f64,
    /// The machine.
    pub host: HostFacts,
    /// The databases found, in ascending order of their pid.
    pub databases: Vec<Database>,
    /// All processes but kernel threads. Only their differences matter: they are not saved.
    #[serde(skip)]
    pub processes: Vec<ProcessTime>,
}

/// The processor time of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessTime {
    /// Its pid.
    pub pid: u32,
    /// When it was started, clock ticks since boot: tells a reused pid apart.
    pub started_ticks: u64,
    /// Its name.
    pub name: String,
    /// Its time on CPU since then.
    pub cpu_s: Seconds,
}
