//! What page faults and page walks cost on this very host.

use crate::{Bytes, Interval};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Penalties measured on this host, for a rule to multiply with a database's own counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When it was measured.
    pub taken_at: Timestamp,
    /// The processor it holds for.
    pub cpu_model: String,
    /// The kernel it holds for.
    pub kernel_release: String,
    /// `check` (a second of measuring before the window) or `bench pages`.
    pub source: String,
    /// Nanoseconds of one minor fault on shared memory that is already in memory, 4 KiB pages:
    /// what a new backend pays.
    pub minor_fault_ns: Interval,
    /// The same for a fault on a write: one page each, where a fault on a read maps up to 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_fault_ns: Option<Interval>,
    /// Nanoseconds that the end of a backend costs for each minor fault on a read that it took:
    /// unmapping what was mapped. Only connections that end pay it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmap_ns: Option<Interval>,
    /// Extra nanoseconds of one random touch on 4 KiB pages compared with 2 MiB pages, by how
    /// much memory is touched; ascending. Each touch waits for the one before it, as the steps of
    /// a database from hash bucket to buffer to row do.
    pub touches: Vec<TouchPenalty>,
    /// Why there are no touches, when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touches_missing: Option<String>,
}

/// The penalty of small pages for a working set of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TouchPenalty {
    /// The memory touched at random.
    pub working_set_bytes: Bytes,
    /// Nanoseconds that a touch costs more on 4 KiB than on 2 MiB pages; may be negative.
    pub extra_ns: Interval,
}

impl Calibration {
    /// The penalty for a working set: that of the largest measured one not above it, or of the
    /// smallest. Larger working sets cost more, so this errs on the low side.
    pub fn touch_penalty(&self, working_set: Bytes) -> Option<TouchPenalty> {
        let fitting = self.touches.iter().rev().find(|t| t.working_set_bytes <= working_set);
        fitting.or(self.touches.first()).copied()
    }
}
