//! Doing what was planned.

use super::capacity::Capacity;
use super::error::BenchError;
use super::options::Request;
use super::page_pools::PagePools;
use super::plan::{Plan, Trial};
use super::results::Results;
use super::schema::PagesBench;
use super::tables::{Measured, Tables};
use super::trials::Trials;
use super::warnings::{self, Warning};
use crate::bench::Bench;
use crate::calibrate::calibrate;
use crate::progress::{Observer, Progress};
use std::cell::RefCell;
use untax_core::{Calibration, Reading};
use untax_host::Host;
use untax_trials::{Interrupted, Runner};

/// Runs a bench. What was done before an interruption is given back as an incomplete result;
/// pools and settings are as before when this returns, whatever it returns.
pub fn run(
    request: &Request,
    bench: &Bench<'_>,
    observer: &mut dyn Observer<PagesBench>,
) -> Result<PagesBench, BenchError> {
    let capacity = Capacity::read(bench.tree, bench.cgroup).map_err(BenchError::Capacity)?;
    let plan = Plan::new(request, &capacity)?;
    let mut results = Results::new(request, &plan, bench.machine, bench.run);
    for warning in warnings::before(request, &plan, &capacity) {
        results.warn(&warning);
    }
    let costs = || {
        let budget = bench.calibration?.within(capacity.available);
        Some(calibrate(bench.program, budget, bench.machine))
    };
    let before = costs();
    let (trials, results) = (Trials::of(&plan, request), RefCell::new(results));
    // Declared before the tables, so that it is dropped after their readers, also in a panic.
    let mut pools = PagePools::open(bench, &request.pages);
    let mut tables = Tables::new(request, bench, &trials, &results, &mut pools);
    let mut screen = Screen { trials: &trials, results: &results, observer };
    let host = Host::live();
    let runner = Runner::new(&trials.design, &bench.interrupt, &host);
    let ran = runner.run(&mut tables, Vec::new(), &mut screen);
    drop(tables);
    pools.close()?;
    match ran {
        Ok(_) => {
            let mut results = results.into_inner();
            calibrated(&mut results, before.zip(costs()));
            Ok(results.assemble(true))
        }
        Err(BenchError::Interrupted(Interrupted)) => Ok(results.borrow().assemble(false)),
        Err(error) => Err(error),
    }
}

/// Keeps what was measured before the trials and behind them, where both agree.
fn calibrated(results: &mut Results, both: Option<(Reading<Calibration>, Reading<Calibration>)>) {
    let Some((before, after)) = both else { return };
    match before.and_then(|before| after.map(|after| before.confirmed_by(&after))) {
        Reading::Present(Ok(calibration)) => results.calibrated(calibration),
        Reading::Present(Err(why)) => results.warn(&Warning::CalibrationDisagrees(why)),
        gap => results.warn(&Warning::NoCalibration(gap.why().unwrap_or_default())),
    }
}

/// Adds each trial to the results.
struct Screen<'a> {
    trials: &'a Trials,
    results: &'a RefCell<Results>,
    observer: &'a mut dyn Observer<PagesBench>,
}

impl untax_trials::Observer<Measured, BenchError> for Screen<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.observer.progress(progress);
    }

    fn trial(&mut self, trials: &[untax_trials::Trial<Measured>]) -> Result<(), BenchError> {
        let Some(last) = trials.last() else { return Ok(()) };
        let (place, trial): (_, Trial) = self.trials.at(&last.slot);
        let mut results = self.results.borrow_mut();
        if last.counts() {
            let Measured { reads_per_s, page_tables } = last.outcome;
            results.add(&place.layout, trial, reads_per_s, page_tables);
        } else {
            let guards = last.spoiled().cloned().collect();
            results.spoil(&place.layout, trial, last.outcome.reads_per_s, guards);
        }
        self.observer.partial(&results.assemble(false));
        Ok(())
    }
}
