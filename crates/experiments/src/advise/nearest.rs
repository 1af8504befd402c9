//! The measured cell that is most like a database's load.

use super::kept::Kept;
use crate::platform::{CellResult, Placement, PlatformBench};
use untax_core::Database;
use untax_core::advice::Needs;

/// From so many connections for each request on, a load is one that connects.
const CONNECTS: f64 = 0.5;

/// A cell by its name, in whichever result it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) workload: String,
    pub(super) placement: Placement,
}

impl Key {
    pub(super) fn of(cell: &CellResult) -> Self {
        Self { workload: cell.workload.clone(), placement: cell.placement }
    }

    pub(super) fn name(&self) -> String {
        format!("{} @ {}", self.workload, self.placement.id())
    }

    /// The cell in a result, where it was measured there.
    pub(super) fn cell<'a>(&self, bench: &'a PlatformBench) -> Option<&'a CellResult> {
        let is_it =
            |cell: &&CellResult| cell.workload == self.workload && cell.placement == self.placement;
        bench.cells.iter().filter(|cell| cell.blocks > 0).find(is_it)
    }
}

/// A cell, and in what it is not like the load.
pub(super) struct Nearest {
    pub(super) key: Key,
    pub(super) note: Option<String>,
}

/// The cell nearest to a database's load: of its engine; of those one that connects as often; of those the most
/// telling.
pub(super) fn nearest(kept: &Kept, database: &Database, needs: &Needs) -> Option<Nearest> {
    let cells = kept.results.iter().flat_map(PlatformBench::measured);
    let of_engine = |cell: &&CellResult| {
        cell.stands_for.as_ref().is_some_and(|load| load.engine == database.engine)
    };
    let cells: Vec<&CellResult> = cells.filter(of_engine).collect();
    let connects = needs.connections_per_request.value().map(|each| *each >= CONNECTS);
    let is_alike = |cell: &&CellResult| {
        let load = cell.stands_for.as_ref();
        load.is_some_and(|load| load.connects == connects.unwrap_or(false))
    };
    let alike: Vec<&CellResult> = cells.iter().copied().filter(is_alike).collect();
    let (cells, note) = if alike.is_empty() {
        (cells, Some("the cell makes connections otherwise than this database does"))
    } else {
        (alike, None)
    };
    let key = Key::of(cells.first()?);
    Some(Nearest { key, note: note.map(str::to_owned) })
}
