//! Doing what was planned.

use super::control::Work;
use super::crew::{Crew, Filled};
use super::error::BenchError;
use super::job::Place;
use super::means::Means;
use super::options::{Page, Request};
use super::page_pools::PagePools;
use super::plan::{Phase, Plan, Purpose, Trial};
use super::results::Results;
use super::schema::PagesBench;
use super::warnings::{self, Warning};
use crate::progress::{Clock, Observer, Progress};
use crate::{Bench, calibrate};
use std::time::Duration;
use untax_core::Reading;
use untax_trials::Interrupted;

/// Length of a calibrating trial at most.
const CHASE: Duration = Duration::from_millis(250);

/// Bytes per second that a filler is expected to write: small pages are faulted in one by one.
const FILL_SMALL: f64 = 400e6;
const FILL_LARGE: f64 = 1.5e9;

/// Bytes per second that one reader is expected to touch first, on small pages.
const TOUCH_SMALL: f64 = 15e9;

/// Runs a bench. What was done before an interruption is given back as an incomplete result;
/// pools and settings are as before when this returns, whatever it returns.
pub fn run(
    request: &Request,
    bench: &Bench<'_>,
    observer: &mut dyn Observer<PagesBench>,
) -> Result<PagesBench, BenchError> {
    let means = Means::read(bench.tree, bench.cgroup).map_err(BenchError::Means)?;
    let plan = Plan::new(request, &means)?;
    let mut results = Results::new(request, &plan, bench.machine, bench.run);
    warnings::before(request, &plan, &means, &mut results);
    if let Some(budget) = bench.calibration {
        match calibrate(bench.program, budget.within(means.available), bench.machine) {
            Reading::Present(calibration) => results.calibrated(calibration),
            gap => results.warn(&Warning::NoCalibration(gap.why().unwrap_or_default())),
        }
    }
    // Declared before the runner, so that it is dropped after the readers, also in a panic.
    let mut pools = PagePools::open(bench, &request.pages);
    let mut runner = Runner {
        request,
        bench,
        clock: clock(request, &plan),
        results,
        observer,
        done: 0,
        total: total(&plan),
    };
    let ran = plan.phases.iter().try_for_each(|phase| runner.phase(phase, &mut pools));
    pools.close()?;
    match ran {
        Ok(()) => Ok(runner.results.assemble(true)),
        Err(BenchError::Interrupted(Interrupted)) => Ok(runner.results.assemble(false)),
        Err(error) => Err(error),
    }
}

fn total(plan: &Plan) -> u32 {
    plan.phases.iter().map(|phase| phase.trials.len() as u32).sum()
}

fn clock(request: &Request, plan: &Plan) -> Clock {
    let preparing = plan.phases.iter().flat_map(|phase| {
        phase.pages.iter().map(|page| {
            let place = Place { layout: phase.layout, page: *page };
            expected_fill(place) + expected_touch(place, request)
        })
    });
    let trials = plan.phases.iter().flat_map(|phase| &phase.trials);
    Clock::new(preparing.sum(), trials.map(|trial| length(request, trial)).sum())
}

/// The length of a trial, with what it takes to come to rest.
fn length(request: &Request, trial: &Trial) -> Duration {
    match trial.purpose {
        Purpose::Chase => request.trial.min(CHASE),
        Purpose::Measure | Purpose::Repeat => request.trial,
    }
    .mul_f64(1.1)
}

fn expected_fill(place: Place) -> Duration {
    let rate = if place.page == Page::Small { FILL_SMALL } else { FILL_LARGE };
    Duration::from_secs_f64(place.layout.bytes().0 as f64 / rate)
}

fn expected_touch(place: Place, request: &Request) -> Duration {
    if place.page != Page::Small {
        return Duration::ZERO;
    }
    let readers = f64::from(request.most_connections());
    Duration::from_secs_f64(place.layout.bytes().0 as f64 * readers / TOUCH_SMALL)
}

/// An error with all its sources, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}

struct Runner<'a> {
    request: &'a Request,
    bench: &'a Bench<'a>,
    clock: Clock,
    results: Results,
    observer: &'a mut dyn Observer<PagesBench>,
    done: u32,
    total: u32,
}

impl Runner<'_> {
    /// Gets the pages, fills the tables, starts the readers, and does the trials. A page size
    /// that cannot be had is left out with a warning; the others go on.
    fn phase(&mut self, phase: &Phase, pools: &mut PagePools<'_>) -> Result<(), BenchError> {
        let mut pages = Vec::new();
        // Pools first: filling small pages scatters the memory that large ones need.
        for page in &phase.pages {
            let place = Place { layout: phase.layout, page: *page };
            self.tell(&format!("getting {} pages", page.id()), 0.0);
            match pools.obtain(place, &self.bench.interrupt)? {
                Ok(()) => pages.push(*page),
                Err(short) => self.results.warn(&short),
            }
        }
        let mut crews = Vec::new();
        // Large pages first, as long as memory is in one piece.
        for page in pages.into_iter().rev() {
            match self.crew(Place { layout: phase.layout, page }) {
                Ok(crew) => crews.push((page, crew)),
                Err(error) if page != Page::Small && error.is_about_memory() => {
                    let (page, row_bytes) = (page.id(), phase.layout.row_bytes);
                    self.results.warn(&Warning::LeftOut { page, row_bytes, why: chain(&error) });
                }
                Err(error) => return Err(error),
            }
        }
        for trial in &phase.trials {
            if let Some((_, crew)) = crews.iter_mut().find(|(page, _)| *page == trial.page) {
                self.trial(phase, *trial, crew)?;
            }
            self.done += 1;
            self.clock.tried(length(self.request, trial));
        }
        drop(crews);
        pools.give_back();
        Ok(())
    }

    fn crew(&mut self, place: Place) -> Result<Crew, BenchError> {
        let (program, interrupt) = (self.bench.program, &self.bench.interrupt);
        let (bytes, page) = (place.layout.bytes(), place.page.id());
        let share = |done: u64, all: u64| done as f64 / all.max(1) as f64;
        self.clock.prepare(expected_fill(place));
        let what = format!("filling {bytes} on {page} pages");
        let filled = Filled::make(program, place, interrupt, |done| {
            self.tell(&what, share(done.0, bytes.0));
        })?;
        self.clock.prepared();
        warnings::obtained(place, &filled, &mut self.results);
        self.clock.prepare(expected_touch(place, self.request));
        let readers = self.request.most_connections();
        let seed = self.request.seed;
        let mut crew = Crew::start(program, &filled, self.request.model, readers, seed)?;
        let what = format!("readers of {page} pages touch the table");
        crew.ready(interrupt, |ready| self.tell(&what, share(ready.into(), readers.into())))?;
        self.clock.prepared();
        Ok(crew)
    }

    fn trial(&mut self, phase: &Phase, trial: Trial, crew: &mut Crew) -> Result<(), BenchError> {
        let Trial { page, connections, purpose, .. } = trial;
        let width = phase.layout.row_bytes;
        self.tell(&format!("{width} B rows, {} pages, {connections} connections", page.id()), 0.0);
        let (work, length) = match purpose {
            Purpose::Measure | Purpose::Repeat => (Work::Read, self.request.trial),
            Purpose::Chase => (Work::Chase, self.request.trial.min(CHASE)),
        };
        let rate = crew.trial(connections, work, length, &self.bench.interrupt)?;
        let page_tables = crew.page_table_bytes(connections)?;
        self.results.add(&phase.layout, trial, rate, page_tables);
        self.observer.partial(&self.results.assemble(false));
        Ok(())
    }

    /// Tells what is being done and how much of it is.
    fn tell(&mut self, doing: &str, share: f64) {
        let left = self.clock.left(share);
        let (done, total) = (self.done, self.total);
        self.observer.progress(&Progress { done, total, doing: doing.to_owned(), left });
    }
}
