//! What will be done, decided before anything is changed: pure, so that tests can ask about any
//! machine.

use super::capacity::Capacity;
use super::job::Place;
use super::options::{Model, Page, Request};
use super::table::Layout;
use untax_core::Bytes;
use untax_trials::{Interleaved, Slot};

/// What a reader's process takes besides page tables.
const READER: Bytes = Bytes(1 << 20);

/// Memory that 8 bytes of page table map.
const PER_ENTRY: u64 = 4096 / 8;

/// Why a request is refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A table does not fit.
    #[error(
        "{rows} rows of {row_bytes} B on {page} pages need {need} ({table} of table, the rest page \
         tables and readers); {available} are available, of which {reserve} stay free for others; \
         {} rows would fit: pass --rows", .fits
    )]
    TooLarge {
        /// The rows asked for.
        rows: u64,
        /// Their width.
        row_bytes: u64,
        /// The page.
        page: &'static str,
        /// All that is needed.
        need: Bytes,
        /// The table's part of it.
        table: Bytes,
        /// `MemAvailable`.
        available: Bytes,
        /// What stays free.
        reserve: Bytes,
        /// How many rows would fit.
        fits: u64,
    },
    /// The pool is too small, and this user cannot enlarge it.
    #[error(
        "{page} pages need {need} free pages in the pool, which has {free}; run as root, or have \
         root raise nr_hugepages"
    )]
    PoolNeedsRoot {
        /// The page.
        page: &'static str,
        /// Pages needed.
        need: u64,
        /// Pages free.
        free: u64,
    },
    /// The control group allows fewer pages: the reader that touches one too many would die of a
    /// bus error.
    #[error(
        "{page} pages need {need} pages, and the control group of this process allows {allowed}; \
         raise hugetlb.*.max, or start the bench outside of it"
    )]
    PoolLimited {
        /// The page.
        page: &'static str,
        /// Pages needed.
        need: u64,
        /// Pages allowed.
        allowed: u64,
    },
    /// Shared memory gets no transparent huge pages, and this user cannot change it.
    #[error(
        "thp needs transparent huge pages for shared memory; run as root, or have root write \
         'advise' to /sys/kernel/mm/transparent_hugepage/shmem_enabled"
    )]
    TransparentNeedsRoot,
    /// This machine has no such pages.
    #[error("this machine has no {page} pages; leave them out of --pages")]
    NoSuchPages {
        /// The page.
        page: &'static str,
    },
    /// The base page is not 4 KiB.
    #[error("the base page of this machine is {0}, not 4 KiB; this bench compares with 4 KiB")]
    BasePage(Bytes),
    /// A number that makes no sense.
    #[error("{0}")]
    Senseless(&'static str),
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It counts.
    Measure,
    /// It repeats the cell of the same round, to see how far two identical trials differ.
    Repeat,
    /// Dependent touches of one reader, for the calibration.
    Chase,
}

/// One trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// The page.
    pub page: Page,
    /// Readers.
    pub connections: u32,
    /// Trials of the same round are a pair.
    pub round: u32,
    /// What it is for.
    pub purpose: Purpose,
}

/// Tables that live at the same time, and the trials on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// The form of the tables.
    pub layout: Layout,
    /// One table each.
    pub pages: Vec<Page>,
    /// In order.
    pub trials: Vec<Trial>,
}

/// All that will be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In order.
    pub phases: Vec<Phase>,
    /// Whether all page sizes of a width live at the same time.
    pub together: bool,
}

impl Phase {
    /// The tables.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.pages.iter().map(|page| Place { layout: self.layout, page: *page })
    }
}

impl Plan {
    /// Plans a request, or refuses it.
    pub fn new(request: &Request, capacity: &Capacity) -> Result<Self, Refusal> {
        make_sense(request)?;
        let layouts = layouts(request, capacity)?;
        request.pages.iter().try_for_each(|page| allowed(*page, &layouts, capacity))?;
        let budget = capacity.budget();
        let costs = |layout: &Layout| {
            let place = |page: &Page| Place { layout: *layout, page: *page };
            request
                .pages
                .iter()
                .map(|page| cost(place(page), request, capacity))
                .collect::<Vec<_>>()
        };
        for layout in &layouts {
            for (page, need) in request.pages.iter().zip(costs(layout)) {
                if need > budget {
                    return Err(too_large(
                        Place { layout: *layout, page: *page },
                        need,
                        request,
                        capacity,
                    ));
                }
            }
        }
        let together =
            layouts.iter().all(|layout| costs(layout).into_iter().sum::<Bytes>() <= budget);
        let mut rng = fastrand::Rng::with_seed(request.seed);
        let mut phases = Vec::new();
        for (place, layout) in layouts.into_iter().enumerate() {
            let chase = place == 0 && chased(&request.pages).is_some();
            phases.extend(phases_of(layout, request, together, chase, &mut rng));
        }
        Ok(Self { phases, together })
    }

    /// The round with which the second half of the trials begins, when tables are filled twice.
    pub fn second_half(request: &Request) -> u32 {
        request.trials.div_ceil(2)
    }
}

/// The two pages whose dependent touches are compared: small ones and the nearest larger.
pub fn chased(pages: &[Page]) -> Option<(Page, Page)> {
    let larger = [Page::Huge, Page::Transparent].into_iter().find(|p| pages.contains(p))?;
    pages.contains(&Page::Small).then_some((Page::Small, larger))
}

fn make_sense(request: &Request) -> Result<(), Refusal> {
    let senseless = |what| Err(Refusal::Senseless(what));
    match request {
        r if r.pages.is_empty() => senseless("name at least one page size"),
        r if r.row_bytes.is_empty() => senseless("name at least one row width"),
        r if r.connections.is_empty() || r.connections.contains(&0) => {
            senseless("connections begin at 1")
        }
        r if r.trials == 0 || r.trial.is_zero() => senseless("a bench needs at least one trial"),
        _ => Ok(()),
    }
}

fn layouts(request: &Request, capacity: &Capacity) -> Result<Vec<Layout>, Refusal> {
    let share = Bytes((capacity.available.0 / 4).min(request.most_table.0));
    let mut widths = request.row_bytes.clone();
    widths.sort_unstable();
    widths.dedup();
    let layout = |width: u64| {
        let rows = request.rows.unwrap_or_else(|| Layout::rows_in(share, width, request.access));
        Layout::new(rows, width, request.access, request.seed).ok_or(Refusal::Senseless(
            "rows and row widths begin at 1 and end where memory can be addressed",
        ))
    };
    widths.into_iter().map(layout).collect()
}

/// Whether this machine has the pages and this user may get them.
fn allowed(page: Page, layouts: &[Layout], capacity: &Capacity) -> Result<(), Refusal> {
    match page {
        Page::Small if capacity.base_page == Bytes::KIB_4 => Ok(()),
        Page::Small => Err(Refusal::BasePage(capacity.base_page)),
        Page::Transparent => match capacity.transparent_changes {
            None => Err(Refusal::NoSuchPages { page: page.id() }),
            Some(0) => Ok(()),
            Some(_) if capacity.root => Ok(()),
            Some(_) => Err(Refusal::TransparentNeedsRoot),
        },
        Page::Huge | Page::Gigantic => {
            let Some(free) = capacity.free_pages(page) else {
                return Err(Refusal::NoSuchPages { page: page.id() });
            };
            let need =
                layouts.iter().map(|layout| pool_pages(Place { layout: *layout, page })).max();
            let need = need.unwrap_or(0);
            if let Some(allowed) = capacity.allowed_pages(page).filter(|allowed| need > *allowed) {
                return Err(Refusal::PoolLimited { page: page.id(), need, allowed });
            }
            if capacity.root || need <= free {
                return Ok(());
            }
            Err(Refusal::PoolNeedsRoot { page: page.id(), need, free })
        }
    }
}

/// Pages that a table takes from its pool.
pub fn pool_pages(place: Place) -> u64 {
    place.file_bytes().0 / place.page.bytes().0
}

/// What a table and its readers take of the available memory. Free pages of a pool are not
/// available memory, so what they cover costs nothing.
fn cost(place: Place, request: &Request, capacity: &Capacity) -> Bytes {
    let processes = match request.model {
        Model::Process => u64::from(request.most_connections()),
        Model::Thread => 1,
    };
    let file = place.file_bytes();
    let covered = place.page.pool().map_or(Bytes(0), |size| {
        Bytes(capacity.free_pages(place.page).unwrap_or(0).saturating_mul(size.0)).min(file)
    });
    let tables =
        if place.page.may_need_small_tables() { file.0 / PER_ENTRY * processes } else { 0 };
    file - covered + Bytes(tables) + Bytes(READER.0 * processes)
}

fn too_large(place: Place, need: Bytes, request: &Request, capacity: &Capacity) -> Refusal {
    let layout = place.layout;
    // The need grows in proportion to the rows, but for the readers and the last page.
    let share = capacity.budget().0 as f64 / need.0 as f64;
    Refusal::TooLarge {
        rows: layout.rows,
        row_bytes: layout.row_bytes,
        page: place.page.id(),
        need,
        table: layout.bytes(),
        available: capacity.available,
        reserve: capacity.reserve(),
        fits: fitting_rows(place, (layout.rows as f64 * share) as u64, request, capacity),
    }
}

/// The most rows, at most `guess`, whose table fits.
fn fitting_rows(place: Place, guess: u64, request: &Request, capacity: &Capacity) -> u64 {
    let fits = |rows| {
        Layout::new(rows, place.layout.row_bytes, place.layout.access, 0).is_some_and(|layout| {
            cost(Place { layout, ..place }, request, capacity) <= capacity.budget()
        })
    };
    let mut rows = guess;
    while rows > 0 && !fits(rows) {
        rows -= (rows / 64).max(1);
    }
    rows
}

fn phases_of(
    layout: Layout,
    request: &Request,
    together: bool,
    chase: bool,
    rng: &mut fastrand::Rng,
) -> Vec<Phase> {
    let mut pages = request.pages.clone();
    pages.sort_unstable();
    pages.dedup();
    let mut phase = |pages: Vec<Page>, rounds: std::ops::Range<u32>| {
        let trials = order(&pages, request, rounds, chase, rng);
        Phase { layout, pages, trials }
    };
    if together || pages.len() == 1 {
        return vec![phase(pages, 0..request.trials)];
    }
    // A B C | C B A: what drifts with time falls on all alike, and the page in the middle is
    // filled only once.
    let (half, end) = (Plan::second_half(request), request.trials);
    let last = pages.len() - 1;
    let mut phases: Vec<Phase> = pages[..last].iter().map(|p| phase(vec![*p], 0..half)).collect();
    phases.push(phase(vec![pages[last]], 0..end));
    phases.extend(pages[..last].iter().rev().map(|p| phase(vec![*p], half..end)));
    phases.retain(|phase| !phase.trials.is_empty());
    phases
}

/// The order of the trials in a phase: those of each round as [`Interleaved`] draws them, and behind them the
/// touches for the calibration.
fn order(
    pages: &[Page],
    request: &Request,
    rounds: std::ops::Range<u32>,
    chase: bool,
    rng: &mut fastrand::Rng,
) -> Vec<Trial> {
    let mut trials = Vec::new();
    let connections = &request.connections;
    let mut order = Interleaved::new((0..pages.len()).collect(), 0..connections.len());
    for round in rounds {
        let trial = |slot: Slot| Trial {
            page: pages[slot.arm],
            connections: connections[slot.cell],
            round,
            purpose: if slot.repeat { Purpose::Repeat } else { Purpose::Measure },
        };
        trials.extend(order.block(round, rng).into_iter().map(trial));
        if chase {
            let (small, larger) = chased(&request.pages).unwrap_or((Page::Small, Page::Huge));
            let mut pair = [small, larger];
            rng.shuffle(&mut pair);
            let here = pair.into_iter().filter(|page| pages.contains(page));
            let purpose = Purpose::Chase;
            trials.extend(here.map(|page| Trial { page, connections: 1, round, purpose }));
        }
    }
    trials
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
