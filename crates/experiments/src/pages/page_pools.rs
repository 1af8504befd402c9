//! Where a bench gets its pages and gives them back; all that it changes is held before.

use super::error::BenchError;
use super::job::Place;
use super::options::Page;
use super::plan::pool_pages;
use super::transparent;
use super::warnings::Warning;
use crate::bench::Bench;
use std::time::Duration;
use untax_changes::temporary::folder;
use untax_changes::{Pool, Temporary, TemporaryError};
use untax_core::plan::Target;
use untax_trials::Interrupt;

/// How long pages that were just freed may take to come back between two phases.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gets pages for tables.
pub(crate) struct PagePools<'a> {
    bench: &'a Bench<'a>,
    pools: Vec<(Page, Pool)>,
    /// What to change for transparent huge pages on shared memory.
    transparent: Vec<Target>,
    changes: Option<Temporary>,
}

impl<'a> PagePools<'a> {
    /// Looks at what is there; changes nothing.
    pub(crate) fn open(bench: &'a Bench<'a>, pages: &[Page]) -> Self {
        let pool = |page: &Page| Some((*page, Pool::find(bench.tree, page.pool()?)?));
        let transparent = if pages.contains(&Page::Transparent) {
            transparent::changes(bench.tree).unwrap_or_default()
        } else {
            Vec::new()
        };
        Self { bench, pools: pages.iter().filter_map(pool).collect(), transparent, changes: None }
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
            self.hold()?;
            transparent::allow(tree, &self.transparent).map_err(BenchError::Transparent)?;
        }
        let Some((_, pool)) = self.pools.iter().find(|(page, _)| *page == place.page) else {
            return Ok(Ok(()));
        };
        let (pool, need) = (pool.clone(), pool_pages(place));
        if pool.free(tree)? >= need {
            return Ok(Ok(()));
        }
        self.hold()?;
        let got = pool.obtain(tree, need, |pause| interrupt.sleep(pause).is_ok())?;
        interrupt.check()?;
        if got >= need {
            return Ok(Ok(()));
        }
        let (page, row_bytes) = (place.page.id(), place.layout.row_bytes);
        Ok(Err(Warning::PoolShort { page, row_bytes, need, got }))
    }

    /// Holds all that may be changed, before the first change.
    fn hold(&mut self) -> Result<(), TemporaryError> {
        if self.changes.is_some() {
            return Ok(());
        }
        let Bench { tree, program, state, lock, run, .. } = *self.bench;
        let mut changes = Temporary::begin(program, &folder(state), Some(lock), tree, run)?;
        for word in &self.transparent {
            changes.hold(word)?;
        }
        for target in self.pools.iter().flat_map(|(_, pool)| pool.targets()) {
            changes.hold(&target)?;
        }
        self.changes = Some(changes);
        Ok(())
    }

    /// Gives the pages back between two phases, so that the next table finds the memory. What
    /// does not come back at once is put back in the end.
    pub(crate) fn give_back(&self) {
        if let Some(changes) = &self.changes {
            changes.put_back(PATIENCE);
        }
    }

    /// Puts all back.
    pub(crate) fn close(self) -> Result<(), TemporaryError> {
        self.changes.map_or(Ok(()), Temporary::release)
    }
}
