//! What a result must be read with, each with the next action.

use super::crew::Filled;
use super::job::Place;
use super::means::Means;
use super::options::{Page, Request};
use super::plan::Plan;
use super::results::Results;
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

/// What can be told before the first trial.
pub(crate) fn before(request: &Request, plan: &Plan, means: &Means, results: &mut Results) {
    if request.trials < FEW_TRIALS {
        results.warn(&Warning::FewTrials(request.trials));
    }
    if means.nodes > 1 {
        results.warn(&Warning::Nodes(means.nodes));
    }
    if !plan.together {
        results.warn(&Warning::Blocks);
    }
    for phase in &plan.phases {
        let (table, row_bytes) = (phase.layout.bytes(), phase.layout.row_bytes);
        if table < SMALL_TABLE {
            results.warn(&Warning::SmallTable { row_bytes, table });
        }
        if !row_bytes.is_multiple_of(8) {
            results.warn(&Warning::OddWidth(row_bytes));
        }
    }
}

/// Whether a table lies on the pages that were asked for.
pub(crate) fn obtained(place: Place, filled: &Filled, results: &mut Results) {
    let (page, table) = (place.page.id(), place.file_bytes());
    let wanted = if place.page == Page::Transparent { Bytes::KIB_4 } else { place.page.bytes() };
    match filled.page {
        Bytes(0) => results.warn(&Warning::PagesUnknown { page }),
        got if got != wanted => results.warn(&Warning::OtherPages { page, got }),
        _ => {}
    }
    let got = filled.transparent;
    if place.page == Page::Transparent && got.0 < table.0 / 100 * 99 {
        results.warn(&Warning::TransparentShort { got, table });
    }
    if place.page == Page::Small && got > Bytes(0) {
        results.warn(&Warning::TransparentUnasked { got });
    }
}
