//! What page faults and page walks cost on this host: whether that may be read, or measured.

use crate::own_cost::Meter;
use std::time::Duration;
use untax_core::host::HostFacts;
use untax_core::{Calibration, Database, PathCosts, Reading, Seconds, Snapshot};

/// How long a calibration that a check made is used; one of `bench pages` holds until the processor
/// or the kernel is another.
const USED_FOR: Duration = Duration::from_secs(24 * 3600);

/// The `source` of a calibration that was measured beside a window.
const HASTY: &str = "check";

/// The largest page that a page walk is expensive for; above it nothing needs a calibration.
const SMALL_PAGE_BYTES: u64 = 64 << 10;

/// What a session may do for a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calibrating {
    /// Nothing: taxes that need one are unmeasured.
    Never,
    /// Use one that is kept; measure nothing. For whoever watches a production host for long.
    Kept,
    /// Use one that is kept, else measure: two or three seconds of CPU time and some hundred MiB, once.
    Measure,
}

/// Where costs that were measured on this host are kept, and how a calibration is measured: given by the caller, who knows the state
/// directory and the experiments.
pub trait PageCosts {
    /// The calibration that is kept, if there is one.
    fn kept(&self) -> Option<Calibration>;
    /// Measures one.
    fn measure(&self, host: &HostFacts) -> Reading<Calibration>;
    /// Keeps one for later sessions; says why it is not kept.
    fn keep(&self, calibration: &Calibration) -> Result<(), String>;
    /// What network paths cost on this host, where a bench measured it here.
    fn paths(&self, _: &HostFacts) -> Reading<PathCosts> {
        Reading::Absent(NO_PATH_COSTS.to_owned())
    }
}

/// What is said where no bench measured paths.
pub const NO_PATH_COSTS: &str = "not measured here: untax bench network";

/// The calibration for a window that ends with this snapshot. `earlier` is that of an earlier window of
/// the same session: what was measured only in part is kept nowhere else.
pub(crate) fn calibration(
    calibrating: Calibrating,
    costs: &dyn PageCosts,
    earlier: Option<&Calibration>,
    snapshot: &Snapshot,
    notes: &mut Vec<String>,
) -> Reading<Calibration> {
    if calibrating == Calibrating::Never {
        return Reading::Absent("switched off with --no-calibration".to_owned());
    }
    if !snapshot.databases.iter().any(is_on_small_pages) {
        return Reading::Absent("no database here needs it".to_owned());
    }
    let kept = earlier.cloned().or_else(|| costs.kept());
    match kept.filter(|kept| holds_here(kept, snapshot)) {
        Some(kept) => Reading::Present(kept),
        None if calibrating == Calibrating::Kept => {
            Reading::Absent("none is kept for this host; untax bench pages measures it".to_owned())
        }
        None => measured(costs, &snapshot.host, notes),
    }
}

fn measured(
    costs: &dyn PageCosts,
    host: &HostFacts,
    notes: &mut Vec<String>,
) -> Reading<Calibration> {
    let mut meter = Meter::default();
    let mut cpu_s = || meter.read(Reading::Absent("not asked".to_owned())).into_value();
    let is_known = cpu_s().is_some();
    let calibration = costs.measure(host);
    let took = cpu_s().filter(|_| is_known).map(|cost| cost.cpu_s);
    let whole = calibration.value().filter(|made| !made.touches.is_empty());
    let keep = |made: &Calibration| made.contradiction().map_or_else(|| costs.keep(made), Err);
    match whole.map(keep) {
        Some(Ok(())) => notes.push(price_note(took)),
        Some(Err(why)) => notes.push(format!("the calibration is not kept: {why}")),
        None => {}
    }
    calibration
}

/// Says that this check measured what pages cost, and what that took, where it is known.
fn price_note(took: Option<Seconds>) -> String {
    let part = took.map_or_else(
        || "this check".to_owned(),
        |took| format!("{:.1} s of this check's CPU time", took.0),
    );
    format!("{part} measured what pages cost here; later checks use that")
}

fn is_on_small_pages(database: &Database) -> bool {
    database.memory.page_size_bytes.value().is_some_and(|page| page.0 <= SMALL_PAGE_BYTES)
}

/// Whether a kept calibration is of this machine, and not a hasty one of long ago.
fn holds_here(kept: &Calibration, snapshot: &Snapshot) -> bool {
    let host = &snapshot.host;
    let age = snapshot.taken_at.duration_since(kept.taken_at);
    let is_fresh = kept.source != HASTY || age.unsigned_abs() < USED_FOR;
    is_fresh
        && host.cpu.value().is_some_and(|cpu| cpu.model == kept.cpu_model)
        && host.kernel.value().is_some_and(|kernel| kernel.release == kept.kernel_release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use untax_core::calibration::TouchPenalty;
    use untax_core::{Bytes, Interval};

    /// Gives the same calibration each time, and counts what is kept.
    struct Costs(Calibration, Cell<u32>);

    impl PageCosts for Costs {
        fn kept(&self) -> Option<Calibration> {
            None
        }

        fn measure(&self, _: &HostFacts) -> Reading<Calibration> {
            Reading::Present(self.0.clone())
        }

        fn keep(&self, _: &Calibration) -> Result<(), String> {
            self.1.set(self.1.get() + 1);
            Ok(())
        }
    }

    #[test]
    fn a_contradictory_calibration_is_used_once_and_not_kept() {
        let touch = |gib: u64, ns| TouchPenalty {
            working_set_bytes: Bytes(gib << 30),
            taking_turns: false,
            extra_ns: Interval::exact(ns),
        };
        let measure = |touches| {
            let calibration = Calibration {
                taken_at: "2026-01-01T00:00:00Z".parse().unwrap(),
                cpu_model: String::new(),
                kernel_release: String::new(),
                source: HASTY.to_owned(),
                minor_fault_ns: Interval::exact(1000.0),
                write_fault_ns: None,
                unmap_ns: None,
                touches,
                touches_missing: None,
            };
            let (costs, mut notes) = (Costs(calibration, Cell::new(0)), Vec::new());
            let used = measured(&costs, &HostFacts::unknown("a test"), &mut notes);
            (used.is_present(), costs.1.get(), notes.remove(0))
        };
        let (used, kept, note) = measure(vec![touch(1, 100.0), touch(8, 200.0)]);
        assert!(used && kept == 1 && note.contains("later checks use that"), "{note}");
        let (used, kept, note) = measure(vec![touch(1, 11_400.0), touch(8, 200.0)]);
        assert!(used && kept == 0 && note.starts_with("the calibration is not kept: a touch of"));
    }

    #[test]
    fn the_note_leaves_out_cpu_time_that_is_not_known() {
        assert!(price_note(Some(Seconds(2.34))).starts_with("2.3 s of this check's CPU time "));
        assert!(price_note(None).starts_with("this check measured what pages cost here; "));
    }
}
