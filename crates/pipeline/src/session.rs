//! One window after the other over the live host: each begins where the one before it ended.

use crate::calibration::{PageCosts, calibration};
use crate::error::PipelineError;
use crate::options::{Options, Target};
use crate::own_cost::Meter;
use crate::snapshot::{closing, opening};
use std::time::{Duration, Instant};
use untax_core::check::OwnCost;
use untax_core::window::{Loads, Pair};
use untax_core::{Calibration, Check, Reading, Snapshot, Window};
use untax_engines::{Asker, Selection};
use untax_host::Host;
use untax_probes::{Observations, Probes};

/// How often the probes do what is due: a hundred times in a window, as far as that is in these bounds.
const STEPS: u32 = 100;
const SHORTEST_STEP: Duration = Duration::from_millis(50);
const LONGEST_STEP: Duration = Duration::from_millis(100);

/// How many windows' loads are kept of each database: some minutes of watching.
const REMEMBERED: usize = 200;

/// What the caller wants while a window passes.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Go on.
    Continue,
    /// End this window early.
    End,
    /// Trace nothing while this function runs, which says for how long this process stood still. The
    /// window becomes so much longer.
    Suspend(fn() -> Duration),
}

/// What was seen in one window, and what it cost to look.
#[derive(Debug)]
pub struct Observed {
    /// What was seen.
    pub window: Window,
    /// What this process took meanwhile.
    pub own: Reading<OwnCost>,
    /// What a person should know that is no part of the result.
    pub notes: Vec<String>,
}

impl Observed {
    /// Applies every rule; `run` is the id of the result.
    pub fn check(&self, run: String) -> Check {
        untax_rules::check(&self.window, run, self.own.clone())
    }
}

/// A window that is open, and what is needed to close it and to open others.
pub struct Session<'a> {
    options: Options,
    costs: &'a dyn PageCosts,
    asker: Asker,
    selection: Selection,
    /// The snapshot with which this window began, or why there is none.
    start: Result<Snapshot, PipelineError>,
    /// Of the windows before this one.
    loads: Vec<Loads>,
    /// What pages cost here, once that is known.
    calibration: Option<Calibration>,
    /// None for a window without length.
    probes: Option<Probes>,
    meter: Meter,
    /// For how long this process was suspended within the window.
    suspended: Duration,
}

impl<'a> Session<'a> {
    /// Takes the first snapshot and opens the first window. A window's length is the time between
    /// what its two snapshots count: servers are asked before that at the start, and after it at the end.
    pub fn open(
        options: Options,
        costs: &'a dyn PageCosts,
        host: &Host,
    ) -> Result<Self, PipelineError> {
        let asker = Asker::this_program();
        let selection = options.target.selection(host)?;
        // Part of a capture: it replays what was asked for, a program that is no database too.
        host.observe("selection", || Reading::Present(selection.clone()));
        let start = opening(host, &asker, &selection)?;
        if start.databases.is_empty() && options.target != Target::All {
            return Err(PipelineError::NoDatabase);
        }
        let window = options.window;
        let probes = (!window.is_zero()).then(|| Probes::begin(&start.databases, window));
        Ok(Self {
            options,
            costs,
            asker,
            selection,
            start: Ok(start),
            loads: Vec::new(),
            calibration: None,
            probes,
            meter: Meter::default(),
            suspended: Duration::ZERO,
        })
    }

    /// What is known when a window opens: its databases, before anything is measured. `None` where there was no
    /// snapshot.
    pub fn opened(&self) -> Option<Check> {
        let start = self.start.as_ref().ok()?;
        Some(Check::of(start, "", "the first window is not over yet"))
    }

    /// Lets the window pass. `step` hears every 50 to 100 ms how much of it has passed; false if it
    /// ended the window early.
    pub fn pass(&mut self, mut step: impl FnMut(Duration) -> Step) -> bool {
        let Some(probes) = &mut self.probes else { return true };
        let (mut begun, window) = (Instant::now(), self.options.window);
        let each = (window / STEPS).clamp(SHORTEST_STEP, LONGEST_STEP);
        loop {
            let passed = begun.elapsed();
            let left = window.saturating_sub(passed);
            if left.is_zero() {
                return true;
            }
            match step(passed) {
                Step::Continue => {}
                Step::End => return false,
                // Before a slice may begin: one that ends at once would stand for all of the rest.
                Step::Suspend(suspend) => {
                    let stood = probes.suspend(suspend);
                    begun += stood;
                    self.suspended += stood;
                }
            }
            probes.tick();
            std::thread::sleep(left.min(each));
        }
    }

    /// Closes the window. Nothing is traced any more while the last snapshot is taken.
    pub fn close(mut self, host: &Host) -> Result<Observed, PipelineError> {
        let Some(seen) = self.probes.take().map(Probes::finish_last) else {
            let end = self.start.clone()?;
            return self.observed(Observations::empty(), end, host, Vec::new());
        };
        self.asker = self.asker.clone().with_timing();
        let (end, notes) = closing(host, &self.asker, &self.selection, None)?;
        self.observed(seen, end, host, notes)
    }

    /// Closes the window and opens the next one: the snapshot is the end of the one and the start
    /// of the other, and programs in the kernel stay loaded.
    ///
    /// An error is a gap of this one window: the next one is open all the same, and begins with a
    /// snapshot of its own if there is one now.
    pub fn next(&mut self, host: &Host) -> Result<Observed, PipelineError> {
        let seen = self.probes.as_mut().map_or_else(Observations::empty, Probes::finish);
        let end = match &self.start {
            Ok(_) => closing(host, &self.asker, &self.selection, None),
            Err(why) => Err(PipelineError::NoStart(why.to_string())),
        };
        let start = match &end {
            Ok((end, _)) => Ok(end.clone()),
            Err(_) => opening(host, &self.asker, &self.selection),
        };
        self.probes = self.probes.take().map(|probes| {
            let known = probes.databases().to_vec();
            probes.next(start.as_ref().map_or(&known, |start| &start.databases))
        });
        let observed = end.and_then(|(end, notes)| self.observed(seen, end, host, notes));
        if let Ok(observed) = &observed {
            self.loads = loads_with(&observed.window);
            self.calibration = observed.window.calibration.value().cloned();
        }
        self.start = start;
        self.suspended = Duration::ZERO;
        observed
    }

    fn observed(
        &mut self,
        seen: Observations,
        end: Snapshot,
        host: &Host,
        mut notes: Vec<String>,
    ) -> Result<Observed, PipelineError> {
        if !self.suspended.is_zero() {
            notes.push(format!(
                "stopped for {:.1?} of the window; what was seen before and after stands for it",
                self.suspended
            ));
        }
        let start = self.start.clone()?;
        let tracing_s = seen.tracing_s.clone();
        let calibrated = |end: &Snapshot| {
            if self.options.window.is_zero() {
                return Reading::Absent("no database here needs it".to_owned());
            }
            let earlier = self.calibration.as_ref();
            calibration(self.options.calibrating, self.costs, earlier, end, &mut notes)
        };
        let mut window = seen.into_window(start, end, host, self.loads.clone(), calibrated);
        window.path_costs = host.observe("path costs", || self.costs.paths(&window.end.host));
        Ok(Observed { window, own: self.meter.read(tracing_s), notes })
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
