//! Where pages are got and given back, with the guard posted before the first change.

use super::error::BenchError;
use super::job::Place;
use super::options::Page;
use super::plan::pool_pages;
use super::warnings::Warning;
use crate::Bench;
use crate::interrupt::Interrupt;
use crate::pools::{self, Guard, GuardError, Pool, Setting};
use std::time::Duration;

/// How long pages that were just freed may take to come back between two phases.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gets pages for tables.
pub(crate) struct Shop<'a> {
    bench: &'a Bench<'a>,
    pools: Vec<(Page, Pool)>,
    /// What to change for transparent huge pages on shared memory.
    transparent: Vec<Setting>,
    guard: Option<Guard>,
}

impl<'a> Shop<'a> {
    /// Looks at what is there; changes nothing.
    pub(crate) fn open(bench: &'a Bench<'a>, pages: &[Page]) -> Self {
        let pool = |page: &Page| Some((*page, Pool::find(bench.tree, page.pool()?)?));
        let transparent = if pages.contains(&Page::Transparent) {
            pools::shared_transparent_settings(bench.tree).unwrap_or_default()
        } else {
            Vec::new()
        };
        Self { bench, pools: pages.iter().filter_map(pool).collect(), transparent, guard: None }
    }

    /// Gets the pages for a table. The inner error says how many there were when they are too
    /// few, and what to do.
    pub(crate) fn obtain(
        &mut self,
        place: Place,
        interrupt: &Interrupt,
    ) -> Result<Result<(), Warning>, BenchError> {
        let tree = self.bench.tree;
        if place.page == Page::Transparent && !self.transparent.is_empty() {
            self.post_guard()?;
            pools::allow_shared_transparent(tree, &self.transparent)?;
        }
        let Some(pool) = self.pools.iter().find(|(page, _)| *page == place.page) else {
            return Ok(Ok(()));
        };
        let (pool, need) = (pool.1.clone(), pool_pages(place));
        if pool.free(tree).map_err(BenchError::Means)? >= need {
            return Ok(Ok(()));
        }
        self.post_guard()?;
        let got = pool.obtain(tree, need, interrupt)?;
        if got >= need {
            return Ok(Ok(()));
        }
        let (page, row_bytes) = (place.page.id(), place.layout.row_bytes);
        Ok(Err(Warning::PoolShort { page, row_bytes, need, got }))
    }

    /// Writes down all that may be changed, and posts the guard, before the first change.
    fn post_guard(&mut self) -> Result<(), BenchError> {
        if self.guard.is_some() {
            return Ok(());
        }
        let Bench { tree, program, state, lock, .. } = *self.bench;
        let mut settings = self.transparent.clone();
        for (_, pool) in &self.pools {
            settings.extend(pool.settings(tree).map_err(BenchError::Means)?);
        }
        self.guard = Some(Guard::post(program, state, lock, tree, settings)?);
        Ok(())
    }

    /// Gives the pages back between two phases, so that the next table finds the memory. What
    /// does not come back at once is the guard's to restore in the end.
    pub(crate) fn give_back(&self) {
        if let Some(guard) = &self.guard {
            guard.journal().restore(PATIENCE);
        }
    }

    /// Has the guard restore everything.
    pub(crate) fn close(self) -> Result<(), GuardError> {
        self.guard.map_or(Ok(()), Guard::release)
    }
}
