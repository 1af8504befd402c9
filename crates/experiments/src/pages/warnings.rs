//! What a result must be read with: typed by where they come from, each with the next action.

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

/// What can be told before the first trial.
pub(crate) fn before(request: &Request, plan: &Plan, means: &Means, results: &mut Results) {
    if request.trials < FEW_TRIALS {
        results.warn(format!(
            "{} trials make wide intervals; use --trials {FEW_TRIALS} or more",
            request.trials
        ));
    }
    if means.nodes > 1 {
        results.warn(format!(
            "{} NUMA nodes: where each table lies is left to the kernel; start the bench with \
             'numactl --interleave=all' to treat all page sizes alike",
            means.nodes
        ));
    }
    if !plan.together {
        results.warn(
            "the tables do not fit in memory together: page sizes were tried in blocks (A B, B A); \
             choose fewer --rows to interleave them trial by trial"
                .to_owned(),
        );
    }
    for phase in &plan.phases {
        let (bytes, width) = (phase.layout.bytes(), phase.layout.row_bytes);
        if bytes < SMALL_TABLE {
            results.warn(format!(
                "the table of {width} B rows takes {bytes} only: caches and TLBs hold much of it; \
                 choose more --rows"
            ));
        }
        if width % 8 != 0 {
            results.warn(format!("rows of {width} B are stored and read in whole words of 8 B"));
        }
    }
}

/// Whether a table lies on the pages that were asked for.
pub(crate) fn obtained(place: Place, filled: &Filled, results: &mut Results) {
    let page = place.page;
    if filled.page == Bytes(0) {
        results.warn(format!("what pages the table on {} pages has could not be read", page.id()));
        return;
    }
    let wanted = if page == Page::Transparent { Bytes::KIB_4 } else { page.bytes() };
    if filled.page != wanted {
        results.warn(format!(
            "the kernel gave {} pages where {} was asked",
            filled.page,
            page.id()
        ));
    }
    let file = place.file_bytes();
    let missing = page == Page::Transparent && filled.transparent.0 < file.0 / 100 * 99;
    if missing {
        results.warn(format!(
            "thp: the kernel made huge pages for {} of {file}; memory is fragmented: write 1 to \
             /proc/sys/vm/compact_memory and try again",
            filled.transparent
        ));
    }
    if page == Page::Small && filled.transparent > Bytes(0) {
        results.warn(format!(
            "4k: the kernel made huge pages of {} although none were asked for; write 'advise' to \
             /sys/kernel/mm/transparent_hugepage/shmem_enabled",
            filled.transparent
        ));
    }
}
