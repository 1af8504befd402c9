//! One window after the other over the live host: each begins where the one before it ended.

use crate::observe::{Observed, Watching};
use crate::rest::Rest;
use crate::state::State;
use anyhow::{Context, bail};
use std::time::{Duration, Instant};
use untax_core::window::{Loads, Pair};
use untax_core::{Calibration, Reading, Snapshot, Window};
use untax_engines::{Asker, Selection};
use untax_host::Host;
use untax_probes::{Probes, Seen};

/// How often the probes do what is due: a hundred times in a window, as far as that is in these bounds.
const STEPS: u32 = 100;
const SHORTEST_STEP: Duration = Duration::from_millis(50);
const LONGEST_STEP: Duration = Duration::from_millis(100);

/// How many windows' loads are kept of each database: some minutes of watching.
const REMEMBERED: usize = 200;

/// A window that is open, and what is needed to close it and to open others.
pub struct Session<'a> {
    watching: &'a Watching,
    state: &'a State,
    asker: Asker,
    selection: Selection,
    opening: Snapshot,
    /// Of the windows before this one.
    loads: Vec<Loads>,
    /// What pages cost here, once that was measured.
    calibration: Option<Calibration>,
    /// None for a window without length.
    probes: Option<Probes>,
    rest: Rest,
    /// For how long this program was stopped within the window.
    rested: Duration,
}

impl<'a> Session<'a> {
    /// Takes the first snapshot and opens the first window. A window's length is the time between
    /// what its two snapshots count; servers are asked after that.
    pub fn open(watching: &'a Watching, state: &'a State, start: &Host) -> anyhow::Result<Self> {
        let rest = Rest::by_signal().context("cannot listen for signals")?;
        let asker = Asker::this_program();
        let selection = watching.selection(start)?;
        // Part of a capture: it replays what was asked for, a program that is no database too.
        start.observe("selection", || Reading::Present(selection.clone()));
        let opening = taken(untax_probes::snapshot(start, &asker, &selection))?;
        if opening.databases.is_empty() && !matches!(selection, Selection::All) {
            bail!("no database is selected by that; untax check --all lists what runs here");
        }
        let window = watching.window;
        let probes = (!window.is_zero()).then(|| Probes::begin(&opening.databases, window));
        let (loads, calibration) = (Vec::new(), None);
        Ok(Self {
            watching,
            state,
            asker,
            selection,
            opening,
            loads,
            calibration,
            probes,
            rest,
            rested: Duration::ZERO,
        })
    }

    /// Lets the window pass. `go_on` hears every 50 to 100 ms how much of it has passed, and may
    /// end it early; then this is false.
    pub fn pass(&mut self, mut go_on: impl FnMut(Duration) -> bool) -> bool {
        let Some(probes) = &mut self.probes else { return true };
        let (mut begun, window) = (Instant::now(), self.watching.window);
        let step = (window / STEPS).clamp(SHORTEST_STEP, LONGEST_STEP);
        loop {
            let passed = begun.elapsed();
            let left = window.saturating_sub(passed);
            if left.is_zero() {
                return true;
            }
            // Before a slice may begin: one that ends at once would stand for all of the rest.
            if self.rest.is_wanted() {
                // One that cannot stop goes on.
                let slept = probes.rest(|| Rest::take().unwrap_or_default());
                begun += slept;
                self.rested += slept;
            }
            probes.tick();
            if !go_on(passed) {
                return false;
            }
            std::thread::sleep(left.min(step));
        }
    }

    /// Closes the window. Nothing is traced any more while the last snapshot is taken.
    pub fn close(mut self, end: &Host) -> anyhow::Result<Observed> {
        let Some(seen) = self.probes.take().map(|mut probes| probes.finish()) else {
            let closing = self.opening.clone();
            return Ok(self.observed(Seen::nothing(), closing, end, Vec::new()));
        };
        self.asker = self.asker.timing();
        let (closing, notes) = self.closing(end)?;
        Ok(self.observed(seen, closing, end, notes))
    }

    /// Closes the window and opens the next one: the snapshot is the end of the one and the start
    /// of the other, and programs in the kernel stay loaded.
    pub fn next(&mut self, end: &Host) -> anyhow::Result<Observed> {
        let seen = self.probes.as_mut().map_or_else(Seen::nothing, Probes::finish);
        let (closing, notes) = self.closing(end)?;
        let probes = self.probes.take();
        self.probes = probes.map(|probes| probes.next(&closing.databases));
        let observed = self.observed(seen, closing, end, notes);
        self.loads = loads_with(&observed.window);
        self.calibration = observed.window.calibration.value().cloned();
        self.opening = observed.window.end.clone();
        self.rested = Duration::ZERO;
        Ok(observed)
    }

    fn closing(&self, end: &Host) -> anyhow::Result<(Snapshot, Vec<String>)> {
        let mut notes = Vec::new();
        let closing = untax_probes::snapshot(end, &self.asker, &self.selection);
        let closing = closing_or_gone(closing, &self.opening, end, &mut notes)?;
        Ok((closing, notes))
    }

    fn observed(
        &self,
        seen: Seen,
        closing: Snapshot,
        end: &Host,
        mut notes: Vec<String>,
    ) -> Observed {
        if !self.rested.is_zero() {
            notes.push(format!(
                "stopped for {:.1?} of the window; what was seen before and after stands for it",
                self.rested
            ));
        }
        let tracing_s = seen.tracing_s.clone();
        let kept = self.calibration.as_ref();
        let calibrated =
            |closing: &Snapshot| self.watching.calibration(self.state, kept, closing, &mut notes);
        let (opening, loads) = (self.opening.clone(), self.loads.clone());
        let window = seen.between(opening, closing, end, loads, calibrated);
        Observed { window, tracing_s, notes }
    }
}

/// What the databases of a window were asked so far, this window included; those that ended are
/// forgotten, and of the others the windows that are longest ago.
fn loads_with(window: &Window) -> Vec<Loads> {
    let of = |pair: Pair| {
        let id = &pair.end.id;
        let before =
            window.loads.iter().find(|loads| loads.database == *id && pair.start.is_some());
        let mut each = before.map(|loads| loads.each.clone()).unwrap_or_default();
        each.extend(pair.load().into_value());
        let old = each.len().saturating_sub(REMEMBERED);
        Loads { database: id.clone(), each: each.split_off(old) }
    };
    window.databases().map(of).collect()
}

/// The snapshot, or why there is none.
pub fn taken(snapshot: Reading<Snapshot>) -> anyhow::Result<Snapshot> {
    match snapshot {
        Reading::Present(snapshot) => Ok(snapshot),
        Reading::Absent(why) => bail!("nothing to check: {why}"),
        gap => bail!("the host cannot be read: {}", gap.why().unwrap_or_default()),
    }
}

/// The snapshot at the end; a selected database that ended meanwhile leaves one without it.
pub fn closing_or_gone(
    closing: Reading<Snapshot>,
    opening: &Snapshot,
    end: &Host,
    notes: &mut Vec<String>,
) -> anyhow::Result<Snapshot> {
    let Reading::Absent(why) = &closing else { return taken(closing) };
    notes.push(format!("gone during the check: {why}"));
    let alone = untax_probes::snapshot_of_host(end).into_value();
    // Older captures do not hold when that was.
    Ok(alone.unwrap_or_else(|| Snapshot { databases: Vec::new(), ..opening.clone() }))
}
