//! What page faults and page walks cost on this very host.

use crate::{Bytes, Interval};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Bytes that a byte of page tables maps: 4 KiB with an entry of 8 bytes.
pub const MAPPED_BY_BYTE: u64 = 512;

/// Penalties measured on this host, for a rule to multiply with a database's own counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When it was measured.
    pub taken_at: Timestamp,
    /// The processor it holds for.
    pub cpu_model: String,
    /// The kernel it holds for.
    pub kernel_release: String,
    /// `check` (some seconds of measuring after the window) or `bench pages`.
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
    /// The memory touched at random, as much as the page tables in use map: processes that map
    /// the same memory count once each.
    pub working_set_bytes: Bytes,
    /// Whether between a few touches as much other memory was worked on as processes that take
    /// turns on a CPU do, rather than one alone.
    #[serde(default)]
    pub taking_turns: bool,
    /// Nanoseconds that a touch costs more on 4 KiB than on 2 MiB pages; may be negative.
    pub extra_ns: Interval,
}

impl Calibration {
    /// The penalty for a working set, between those of the measured ones next to it, which are
    /// evenly apart on a scale of logarithms. Below and above all of them it is that of the nearest;
    /// larger working sets cost more, and so do processes that take turns where that was not
    /// measured: this errs on the low side.
    pub fn touch_penalty(&self, working_set: Bytes, taking_turns: bool) -> Option<TouchPenalty> {
        let of_kind = |taking_turns| {
            let mut alike = self.touches.iter().filter(move |t| t.taking_turns == taking_turns);
            let below = alike.clone().rfind(|t| t.working_set_bytes <= working_set);
            let above = alike.find(|t| t.working_set_bytes > working_set);
            match (below, above) {
                (Some(below), Some(above)) => Some(between(below, above, working_set)),
                (below, above) => below.or(above).copied(),
            }
        };
        of_kind(taking_turns).or_else(|| of_kind(false))
    }
}

/// The penalty for a working set between two that were measured.
fn between(below: &TouchPenalty, above: &TouchPenalty, working_set: Bytes) -> TouchPenalty {
    let log = |bytes: Bytes| (bytes.0.max(1) as f64).log2();
    let (low, high) = (log(below.working_set_bytes), log(above.working_set_bytes));
    let part = (log(working_set) - low) / (high - low);
    let extra_ns = below.extra_ns.scale(1.0 - part).plus(above.extra_ns.scale(part));
    TouchPenalty { working_set_bytes: working_set, extra_ns, ..*below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_penalty_is_that_of_the_working_sets_next_to_it_and_of_its_kind() {
        let touch = |gib: u64, taking_turns, ns| TouchPenalty {
            working_set_bytes: Bytes(gib << 30),
            taking_turns,
            extra_ns: Interval::exact(ns),
        };
        let mut calibration = Calibration {
            taken_at: Timestamp::UNIX_EPOCH,
            cpu_model: String::new(),
            kernel_release: String::new(),
            source: "check".to_owned(),
            minor_fault_ns: Interval::exact(1.0),
            write_fault_ns: None,
            unmap_ns: None,
            touches: vec![touch(1, false, 10.0), touch(1, true, 20.0), touch(4, false, 40.0)],
            touches_missing: None,
        };
        let ns = |calibration: &Calibration, gib: u64, taking_turns| {
            Some(calibration.touch_penalty(Bytes(gib << 30), taking_turns)?.extra_ns.mid)
        };
        assert_eq!(ns(&calibration, 8, false), Some(40.0));
        assert_eq!(ns(&calibration, 2, false), Some(25.0), "half way, by doublings");
        assert_eq!(ns(&calibration, 1, false), Some(10.0));
        assert_eq!(ns(&calibration, 0, false), Some(10.0));
        assert_eq!(ns(&calibration, 8, true), Some(20.0));
        calibration.touches.remove(1);
        assert_eq!(ns(&calibration, 8, true), Some(40.0), "better than nothing");
        calibration.touches.clear();
        assert_eq!(ns(&calibration, 8, true), None);
    }
}
