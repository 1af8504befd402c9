//! What a result must be read with, each with the next action.

use super::capacity::Capacity;
use super::job::Place;
use super::options::{Page, Request};
use super::plan::Plan;
use untax_core::Bytes;

/// Trials below which an interval is hardly one.
const FEW_TRIALS: u32 = 7;

/// Memory below which the caches and TLBs of current processors hold much of a table.
const SMALL_TABLE: Bytes = Bytes(1 << 30);

/// A warning; its text is what the result carries.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Warning {
    #[error("{0} trials make wide intervals; use --trials {FEW_TRIALS} or more")]
    FewTrials(u32),
    #[error(
        "{0} NUMA nodes: where each table lies is left to the kernel; start the bench with \
         'numactl --interleave=all' to treat all page sizes alike"
    )]
    Nodes(usize),
    #[error(
        "the tables do not fit in memory together: page sizes were tried in blocks (A B, B A); \
         choose fewer --rows to interleave them trial by trial"
    )]
    Blocks,
    #[error(
        "the table of {row_bytes} B rows takes {table} only: caches and TLBs hold much of it; \
         choose more --rows"
    )]
    SmallTable { row_bytes: u64, table: Bytes },
    #[error("rows of {0} B are stored and read in whole words of 8 B; choose a multiple of 8")]
    OddWidth(u64),
    #[error("no calibration: {0}; see what 'untax check' says of it")]
    NoCalibration(String),
    #[error(
        "{page} pages left out for rows of {row_bytes} B: {need} were needed, {got} could be had; \
         reserve them at boot, or choose fewer --rows"
    )]
    PoolShort { page: &'static str, row_bytes: u64, need: u64, got: u64 },
    #[error("{page} pages left out for rows of {row_bytes} B: {why}")]
    LeftOut { page: &'static str, row_bytes: u64, why: String },
    #[error(
        "{trials} trials do not count ({guards}) and were made once more; stop what else runs here, or \
         choose longer --trial-seconds"
    )]
    Spoiled { trials: usize, guards: String },
    #[error("what pages the table on {page} pages has could not be read; see /proc/self/smaps")]
    PagesUnknown { page: &'static str },
    #[error("the kernel gave pages of {got} where {page} was asked; its results say nothing")]
    OtherPages { page: &'static str, got: Bytes },
    #[error(
        "thp: the kernel made huge pages for {got} of {table} only, memory is fragmented; write 1 \
         to /proc/sys/vm/compact_memory and try again"
    )]
    TransparentShort { got: Bytes, table: Bytes },
    #[error(
        "4k: the kernel made huge pages for {got} although none were asked for; write 'advise' to \
         /sys/kernel/mm/transparent_hugepage/shmem_enabled"
    )]
    TransparentUnasked { got: Bytes },
}

/// The warnings that hold before the first trial.
pub(crate) fn before(request: &Request, plan: &Plan, capacity: &Capacity) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if request.trials < FEW_TRIALS {
        warnings.push(Warning::FewTrials(request.trials));
    }
    if capacity.nodes > 1 {
        warnings.push(Warning::Nodes(capacity.nodes));
    }
    if !plan.together {
        warnings.push(Warning::Blocks);
    }
    for phase in &plan.phases {
        let (table, row_bytes) = (phase.layout.bytes(), phase.layout.row_bytes);
        if table < SMALL_TABLE {
            warnings.push(Warning::SmallTable { row_bytes, table });
        }
        if !row_bytes.is_multiple_of(8) {
            warnings.push(Warning::OddWidth(row_bytes));
        }
    }
    warnings
}

/// Warnings about a table whose pages, of the size `got`, are not those that the bench asked for. A
/// size of zero means that the child could not read it; then it does not know either how much of
/// the table is on `transparent` huge pages.
pub(crate) fn other_pages(place: Place, got: Bytes, transparent: Bytes) -> Vec<Warning> {
    let (page, table) = (place.page.id(), place.file_bytes());
    if got == Bytes(0) {
        return vec![Warning::PagesUnknown { page }];
    }
    let wanted = if place.page == Page::Transparent { Bytes::KIB_4 } else { place.page.bytes() };
    let mut warnings = Vec::new();
    if got != wanted {
        warnings.push(Warning::OtherPages { page, got });
    }
    if place.page == Page::Transparent && transparent.0 < table.0 / 100 * 99 {
        warnings.push(Warning::TransparentShort { got: transparent, table });
    }
    if place.page == Page::Small && transparent > Bytes(0) {
        warnings.push(Warning::TransparentUnasked { got: transparent });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::options::Access;
    use crate::pages::table::Layout;

    fn place(page: Page) -> Place {
        Place { layout: Layout::new(1_000_000, 128, Access::Direct, 0).unwrap(), page }
    }

    #[test]
    fn pages_that_could_not_be_read_are_no_fragmented_memory() {
        for page in Page::ALL {
            let unknown = Warning::PagesUnknown { page: page.id() };
            assert_eq!(other_pages(place(page), Bytes(0), Bytes(0)), [unknown]);
        }
    }

    #[test]
    fn other_pages_than_asked_for_are_told() {
        let thp = place(Page::Transparent);
        let table = thp.file_bytes();
        assert!(other_pages(thp, Bytes::KIB_4, table).is_empty());
        let got = Bytes::MIB_2;
        let short = Warning::TransparentShort { got, table };
        assert_eq!(other_pages(thp, Bytes::KIB_4, got), [short]);
        let unasked = Warning::TransparentUnasked { got };
        assert_eq!(other_pages(place(Page::Small), Bytes::KIB_4, got), [unasked]);
        let other = Warning::OtherPages { page: "2m", got: Bytes::KIB_4 };
        assert_eq!(other_pages(place(Page::Huge), Bytes::KIB_4, Bytes(0)), [other]);
    }
}
