//! The tables of a bench with their readers, as the rig of its trials.

use super::control::Work;
use super::error::BenchError;
use super::job::Place;
use super::options::{Page, Request};
use super::page_pools::PagePools;
use super::plan::Purpose;
use super::readers::{Filled, Readers};
use super::results::Results;
use super::trials::{Trials, expected_fill, expected_touch, length};
use super::warnings::{self, Warning};
use crate::bench::Bench;
use std::cell::RefCell;
use std::time::Duration;
use untax_core::Bytes;
use untax_trials::{Rig, Slot};

/// What a trial gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Reads or touches per second, of all readers.
    pub(crate) reads_per_s: f64,
    /// Their page tables.
    pub(crate) page_tables: Bytes,
}

/// Filled tables and their readers, those that live at the same time.
pub(crate) struct Tables<'a, 'b> {
    request: &'a Request,
    bench: &'a Bench<'a>,
    trials: &'a Trials,
    results: &'a RefCell<Results>,
    readers: Vec<(usize, Readers)>,
    pools: &'a mut PagePools<'b>,
}

/// How far the preparation of a phase is, and the function that is told.
struct Preparation<'a> {
    tell: &'a mut dyn FnMut(&str, f64),
    all: Duration,
    done: Duration,
}

impl Preparation<'_> {
    /// Tells that `done` of `all` of a part is done; the whole part is expected to take `expected`.
    fn part(&mut self, doing: &str, expected: Duration, done: u64, all: u64) {
        let share = done as f64 / all.max(1) as f64;
        let done = self.done + expected.mul_f64(share.clamp(0.0, 1.0));
        (self.tell)(doing, done.as_secs_f64() / self.all.as_secs_f64().max(f64::MIN_POSITIVE));
    }
}

impl<'a, 'b> Tables<'a, 'b> {
    /// No tables yet.
    pub(crate) fn new(
        request: &'a Request,
        bench: &'a Bench<'a>,
        trials: &'a Trials,
        results: &'a RefCell<Results>,
        pools: &'a mut PagePools<'b>,
    ) -> Self {
        Self { request, bench, trials, results, readers: Vec::new(), pools }
    }

    /// Ends the readers, frees the tables and gives their pages back.
    fn put_away(&mut self) {
        self.readers.clear();
        self.pools.give_back();
    }

    /// Fills a table and starts its readers.
    fn start_readers(
        &self,
        place: Place,
        preparation: &mut Preparation<'_>,
    ) -> Result<Readers, BenchError> {
        let (program, interrupt) = (self.bench.program, &self.bench.interrupt);
        let (bytes, page) = (place.layout.bytes(), place.page.id());
        let expected = expected_fill(place);
        let what = format!("filling {bytes} on {page} pages");
        let filled = Filled::make(program, place, interrupt, |done| {
            preparation.part(&what, expected, done.0, bytes.0);
        })?;
        preparation.done += expected;
        for warning in warnings::other_pages(place, filled.page, filled.transparent) {
            self.results.borrow_mut().warn(&warning);
        }
        let count = self.request.most_connections();
        let (model, seed) = (self.request.model, self.request.seed);
        let mut readers = Readers::start(program, &filled, model, count, seed)?;
        let expected = expected_touch(place, self.request);
        let what = format!("readers of {page} pages touch the table");
        readers.ready(interrupt, |ready| {
            preparation.part(&what, expected, ready.into(), count.into());
        })?;
        preparation.done += expected;
        Ok(readers)
    }
}

impl Rig for Tables<'_, '_> {
    type Error = BenchError;
    type Outcome = Measured;

    /// Gets the pages, fills the tables and starts the readers. A page size that cannot be had is left out
    /// with a warning; the others go on.
    fn prepare(
        &mut self,
        arms: &[usize],
        tell: &mut dyn FnMut(&str, f64),
    ) -> Result<(), BenchError> {
        self.put_away();
        let mut arms = arms.to_vec();
        let place = |arm: usize| self.trials.places[arm];
        let expected = |arm: &usize| self.trials.design.arms[*arm].preparing;
        let (all, done) = (arms.iter().map(expected).sum(), Duration::ZERO);
        let mut preparation = Preparation { tell, all, done };
        let mut had = Vec::new();
        // Pools first: filling small pages scatters the memory that large ones need.
        for arm in &arms {
            preparation.part(
                &format!("getting {} pages", place(*arm).page.id()),
                Duration::ZERO,
                0,
                1,
            );
            match self.pools.obtain(place(*arm), &self.bench.interrupt)? {
                Ok(()) => had.push(*arm),
                Err(short) => self.results.borrow_mut().warn(&short),
            }
        }
        arms.retain(|arm| had.contains(arm));
        // Large pages first, as long as memory is in one piece.
        for arm in arms.into_iter().rev() {
            let place = place(arm);
            match self.start_readers(place, &mut preparation) {
                Ok(readers) => self.readers.push((arm, readers)),
                Err(error) if place.page != Page::Small && error.is_about_memory() => {
                    let (page, row_bytes) = (place.page.id(), place.layout.row_bytes);
                    let left_out = Warning::LeftOut { page, row_bytes, why: chain(&error) };
                    self.results.borrow_mut().warn(&left_out);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn run(&mut self, slot: &Slot) -> Result<Option<Measured>, BenchError> {
        let Some((_, readers)) = self.readers.iter_mut().find(|(arm, _)| *arm == slot.arm) else {
            return Ok(None);
        };
        let (_, trial) = self.trials.at(slot);
        let is_chase = trial.purpose == Purpose::Chase;
        let work = if is_chase { Work::Chase } else { Work::Read };
        let length = length(self.request, is_chase);
        let reads_per_s = readers.trial(trial.connections, work, length, &self.bench.interrupt)?;
        let page_tables = readers.page_table_bytes(trial.connections)?;
        Ok(Some(Measured { reads_per_s, page_tables }))
    }

    fn tear_down(&mut self) -> Result<(), BenchError> {
        self.put_away();
        Ok(())
    }
}

/// An error with all its sources, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}
