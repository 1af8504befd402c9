//! What page faults and page walks cost on this very host.

use crate::{Bytes, Interval};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Bytes that a byte of page tables maps: 4 KiB with an entry of 8 bytes.
pub const MAPPED_BY_BYTE: u64 = 512;

/// Two measurements of one cost on one machine, soon after each other, that are further apart than this
/// factor were not of the same thing: something else ran in one of them. On a virtual machine that others
/// shared, the middle of calibrations differed by 2.8 from one hour to another.
pub const MOST_APART: f64 = 3.0;

/// A cost below this many nanoseconds is nothing to compare: the clock takes as long to read.
const NOTHING_NS: f64 = 20.0;

/// Penalties measured on this host, for a rule to multiply with a database's own counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

    /// Why this cannot be true as a whole; `None` where it may be: a larger working set never costs much
    /// less than a smaller one.
    pub fn contradiction(&self) -> Option<String> {
        let of_kind = |taking_turns| {
            let alike = self.touches.iter().filter(move |t| t.taking_turns == taking_turns);
            let larger = alike.clone().skip(1);
            alike.zip(larger)
        };
        let falls = |(small, large): &(&TouchPenalty, &TouchPenalty)| {
            large.extra_ns.mid < small.extra_ns.mid
                && are_apart(small.extra_ns.mid, large.extra_ns.mid)
        };
        let (small, large) = of_kind(false).chain(of_kind(true)).find(falls)?;
        Some(format!(
            "a touch of {} costs {:.0} ns more on small pages, one of {} {:.0} ns",
            small.working_set_bytes,
            small.extra_ns.mid,
            large.working_set_bytes,
            large.extra_ns.mid
        ))
    }

    /// What this and a second measurement, on the same machine soon after, say together: the middle of both
    /// with the bounds of either, of all that both measured.
    ///
    /// # Errors
    /// Says which cost they disagree about.
    pub fn confirmed_by(&self, second: &Self) -> Result<Self, String> {
        if let Some(why) = self.contradiction().or_else(|| second.contradiction()) {
            return Err(why);
        }
        let optional = |what: &str, a: Option<Interval>, b: Option<Interval>| {
            a.zip(b).map(|(a, b)| both(what, a, b)).transpose()
        };
        let touch = |one: &TouchPenalty| {
            let alike = |t: &&TouchPenalty| {
                (t.working_set_bytes, t.taking_turns) == (one.working_set_bytes, one.taking_turns)
            };
            let again = second.touches.iter().find(alike)?;
            let what = format!("a touch of {} on small pages", one.working_set_bytes);
            let extra_ns = both(&what, one.extra_ns, again.extra_ns);
            Some(extra_ns.map(|extra_ns| TouchPenalty { extra_ns, ..*one }))
        };
        let touches: Vec<TouchPenalty> =
            self.touches.iter().filter_map(touch).collect::<Result<_, _>>()?;
        let missing = || {
            let why = self.touches_missing.clone().or_else(|| second.touches_missing.clone());
            why.unwrap_or_else(|| "no working set was measured twice".to_owned())
        };
        Ok(Self {
            touches_missing: touches.is_empty().then(missing),
            minor_fault_ns: both("a minor fault", self.minor_fault_ns, second.minor_fault_ns)?,
            write_fault_ns: optional("a write fault", self.write_fault_ns, second.write_fault_ns)?,
            unmap_ns: optional("unmapping", self.unmap_ns, second.unmap_ns)?,
            touches,
            ..second.clone()
        })
    }
}

/// Whether two costs, ns, were not measured of one and the same thing.
fn are_apart(a: f64, b: f64) -> bool {
    let (low, high) = (a.min(b), a.max(b));
    !a.is_finite() || !b.is_finite() || (high > NOTHING_NS && high > MOST_APART * low)
}

fn both(what: &str, a: Interval, b: Interval) -> Result<Interval, String> {
    if are_apart(a.mid, b.mid) {
        return Err(format!("{what} cost {:.0} ns once and {:.0} ns again", a.mid, b.mid));
    }
    Ok(Interval::new(a.low.min(b.low), f64::midpoint(a.mid, b.mid), a.high.max(b.high)))
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

    fn touch(gib: u64, taking_turns: bool, ns: f64) -> TouchPenalty {
        TouchPenalty {
            working_set_bytes: Bytes(gib << 30),
            taking_turns,
            extra_ns: Interval::exact(ns),
        }
    }

    fn calibration(touches: Vec<TouchPenalty>) -> Calibration {
        Calibration {
            taken_at: Timestamp::UNIX_EPOCH,
            cpu_model: String::new(),
            kernel_release: String::new(),
            source: "check".to_owned(),
            minor_fault_ns: Interval::exact(1000.0),
            write_fault_ns: None,
            unmap_ns: Some(Interval::exact(200.0)),
            touches,
            touches_missing: None,
        }
    }

    #[test]
    fn two_measurements_of_one_machine_are_one_where_they_agree() {
        let first = calibration(vec![touch(1, false, 100.0), touch(8, false, 200.0)]);
        let mut second = calibration(vec![touch(1, false, 200.0)]);
        second.minor_fault_ns = Interval::new(1000.0, 2000.0, 3000.0);
        let whole = first.confirmed_by(&second).unwrap();
        assert_eq!(whole.minor_fault_ns, Interval::new(1000.0, 1500.0, 3000.0));
        let expected =
            TouchPenalty { extra_ns: Interval::new(100.0, 150.0, 200.0), ..touch(1, false, 150.0) };
        assert_eq!(whole.touches, [expected], "what was measured once alone is left out");
        let none = first.confirmed_by(&calibration(Vec::new())).unwrap();
        assert!(none.touches.is_empty() && none.touches_missing.is_some());
        // One of them was spoiled.
        second.touches[0].extra_ns = Interval::exact(11_400.0);
        let why = first.confirmed_by(&second).unwrap_err();
        assert_eq!(why, "a touch of 1 GiB on small pages cost 100 ns once and 11400 ns again");
        second = calibration(Vec::new());
        second.minor_fault_ns = Interval::exact(f64::NAN);
        assert!(first.confirmed_by(&second).is_err());
    }

    #[test]
    fn a_larger_working_set_that_costs_much_less_is_a_contradiction() {
        let rising = calibration(vec![touch(1, false, 100.0), touch(8, false, 90.0)]);
        assert_eq!(rising.contradiction(), None);
        let kinds = vec![touch(1, false, 900.0), touch(1, true, 100.0), touch(8, false, 950.0)];
        assert_eq!(calibration(kinds).contradiction(), None, "of two kinds");
        let broken = calibration(vec![touch(1, false, 11_400.0), touch(8, false, 100.0)]);
        assert!(broken.contradiction().unwrap().contains("11400 ns"));
        assert!(broken.confirmed_by(&broken).is_err());
        let nothing = calibration(vec![touch(1, false, 12.0), touch(8, false, -3.0)]);
        assert_eq!(nothing.contradiction(), None, "neither is anything");
    }

    #[test]
    fn the_penalty_is_that_of_the_working_sets_next_to_it_and_of_its_kind() {
        let mut calibration =
            calibration(vec![touch(1, false, 10.0), touch(1, true, 20.0), touch(4, false, 40.0)]);
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
