//! The planned trials as the runner takes them: a table is an arm, a number of readers is a cell.

use super::job::Place;
use super::options::{Page, Request};
use super::plan::{Phase, Plan, Purpose, Trial};
use std::time::Duration;
use untax_trials::{Arm, Block, Cell, Design, Slot};

/// Length of a calibrating trial at most.
const CHASE: Duration = Duration::from_millis(250);

/// What a trial takes besides its length, as a factor: readers come to rest first.
const WITH_REST: f64 = 1.1;

/// Bytes per second that a filler is expected to write: small pages are faulted in one by one.
const FILL_SMALL: f64 = 400e6;
const FILL_LARGE: f64 = 1.5e9;

/// Bytes per second that one reader is expected to touch first, on small pages.
const TOUCH_SMALL: f64 = 15e9;

/// The design of a plan, and what its arms and cells stand for.
pub(crate) struct Trials {
    pub(crate) design: Design,
    pub(crate) places: Vec<Place>,
    cells: Vec<(u32, bool)>,
}

impl Trials {
    /// The trials of a plan.
    pub(crate) fn of(plan: &Plan, request: &Request) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for place in plan.phases.iter().flat_map(Phase::places) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let mut cells: Vec<(u32, bool)> = request.connections.iter().map(|n| (*n, false)).collect();
        cells.push((1, true));
        let arm = |place: &Place| Arm {
            name: format!("{} B rows, {} pages", place.layout.row_bytes, place.page.id()),
            configuration: format!("{} rows by {}", place.layout.rows, request.access.id()),
            preparing: expected_fill(*place) + expected_touch(*place, request),
            ..Arm::default()
        };
        let cell = |(connections, is_chase): &(u32, bool)| Cell {
            name: format!("{connections} connections"),
            length: Some(length(request, *is_chase).mul_f64(WITH_REST)),
        };
        let design = Design {
            seed: request.seed,
            arms: places.iter().map(arm).collect(),
            cells: cells.iter().map(cell).collect(),
            blocks: Vec::new(),
        };
        let mut trials = Self { design, places, cells };
        trials.design.blocks = plan.phases.iter().flat_map(|phase| trials.blocks(phase)).collect();
        trials
    }

    /// The rounds of a phase, whose tables live together.
    fn blocks(&self, phase: &Phase) -> Vec<Block> {
        let together: Vec<usize> = phase.places().filter_map(|place| self.arm(&place)).collect();
        let rounds = phase.trials.chunk_by(|one, other| one.round == other.round);
        let block = |round: &[Trial]| Block {
            together: together.clone(),
            slots: round.iter().filter_map(|trial| self.slot(phase, trial)).collect(),
        };
        rounds.map(block).collect()
    }

    fn arm(&self, place: &Place) -> Option<usize> {
        self.places.iter().position(|known| known == place)
    }

    fn slot(&self, phase: &Phase, trial: &Trial) -> Option<Slot> {
        let Trial { page, connections, round, purpose } = *trial;
        let cell = (connections, purpose == Purpose::Chase);
        Some(Slot {
            block: round,
            arm: self.arm(&Place { layout: phase.layout, page })?,
            cell: self.cells.iter().position(|known| *known == cell)?,
            repeat: purpose == Purpose::Repeat,
        })
    }

    /// The table and the trial of a slot.
    pub(crate) fn at(&self, slot: &Slot) -> (Place, Trial) {
        let place = self.places[slot.arm];
        let (connections, is_chase) = self.cells[slot.cell];
        let purpose = match (is_chase, slot.repeat) {
            (true, _) => Purpose::Chase,
            (false, true) => Purpose::Repeat,
            (false, false) => Purpose::Measure,
        };
        (place, Trial { page: place.page, connections, round: slot.block, purpose })
    }
}

/// How long a trial counts.
pub(crate) fn length(request: &Request, is_chase: bool) -> Duration {
    if is_chase { request.trial.min(CHASE) } else { request.trial }
}

/// How long filling a table is expected to take.
pub(crate) fn expected_fill(place: Place) -> Duration {
    let rate = if place.page == Page::Small { FILL_SMALL } else { FILL_LARGE };
    Duration::from_secs_f64(place.layout.bytes().0 as f64 / rate)
}

/// How long its readers are expected to take until they have touched all of it.
pub(crate) fn expected_touch(place: Place, request: &Request) -> Duration {
    if place.page != Page::Small {
        return Duration::ZERO;
    }
    let readers = f64::from(request.most_connections());
    Duration::from_secs_f64(place.layout.bytes().0 as f64 * readers / TOUCH_SMALL)
}
