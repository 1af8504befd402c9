//! What a result must be read with, each with the next action.

use super::capacity::Capacity;
use super::job::Place;
use super::options::{Page, Request};
use super::plan::Plan;
use untax_core::Bytes;
use untax_core::bench::{self, WarningKind};
use untax_core::calibration::MOST_APART;

/// Trials below which an interval is hardly one.
const FEW_TRIALS: u32 = 7;

/// Memory below which the caches and TLBs of current processors hold much of a table.
const SMALL_TABLE: Bytes = Bytes(1 << 30);

/// Every kind of warning, for documents and scripts.
pub(super) static KINDS: &[WarningKind] = &[
    kind("few-trials", "Few trials make wide intervals.", "Use `--trials 7` or more."),
    kind(
        "numa-placement",
        "The kernel chose the NUMA node of each table.",
        "Start the bench with `numactl --interleave=all`.",
    ),
    kind(
        "tables-in-blocks",
        "The tables did not fit in memory together and were tried one after the other.",
        "Choose fewer `--rows`.",
    ),
    kind("small-table", "Caches and TLBs hold much of a table.", "Choose more `--rows`."),
    kind("odd-width", "Rows are stored in whole words of 8 B.", "Choose a multiple of 8."),
    kind(
        "no-calibration",
        "What faults and touches cost here was not measured.",
        "See what `untax check` says of it.",
    ),
    kind(
        "calibration-disagrees",
        "Measured before the trials and behind them, a cost differed too much to be kept for checks.",
        "Stop what else runs here, and try again.",
    ),
    kind(
        "pool-short",
        "The kernel gave fewer huge pages than a table needs, so that page size was left out.",
        "Reserve them at boot, or choose fewer `--rows`.",
    ),
    kind(
        "page-left-out",
        "A table on such pages could not be made.",
        "Read the reason in the text.",
    ),
    kind(
        "trials-spoiled",
        "A guard was exceeded beside trials, which were made once more and do not count.",
        "Stop what else runs here, or choose longer `--trial-seconds`.",
    ),
    kind(
        "trials-apart",
        "Trials were far from the others of their cell and do not count.",
        "Stop what else runs here, or choose longer `--trial-seconds`.",
    ),
    kind(
        "cells-apart",
        "More readers read far less, or far more than so many can: no ratio is made of these cells.",
        "Stop what else runs here, and try again.",
    ),
    kind("pages-unknown", "Which pages a table got could not be read.", "See `/proc/self/smaps`."),
    kind(
        "other-pages",
        "A table got other pages than asked for.",
        "Read nothing from its results.",
    ),
    kind(
        "thp-short",
        "The kernel made transparent huge pages for a part of a table only.",
        "Write 1 to `/proc/sys/vm/compact_memory` and try again.",
    ),
    kind(
        "thp-unasked",
        "The kernel made huge pages for the table on small ones.",
        "Write `advise` to `/sys/kernel/mm/transparent_hugepage/shmem_enabled`.",
    ),
];

const fn kind(id: &'static str, meaning: &'static str, action: &'static str) -> WarningKind {
    WarningKind { id, meaning, action }
}

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
        "the calibration disagrees with itself ({0}), so that checks go on with the one they had; stop \
         what else runs here, and try again"
    )]
    CalibrationDisagrees(String),
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
    #[error(
        "{trials} trials do not count: each was more than {MOST_APART} times as fast or as slow as the \
         others of its cell; stop what else runs here, or choose longer --trial-seconds"
    )]
    TrialsApart { trials: usize },
    #[error(
        "{page} pages, rows of {row_bytes} B: {rates} cannot all be true, so no ratio is made of them; \
         stop what else runs here, and try again"
    )]
    CellsApart { page: &'static str, row_bytes: u64, rates: String },
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

impl Warning {
    /// The id of its kind.
    const fn id(&self) -> &'static str {
        match self {
            Self::FewTrials(_) => "few-trials",
            Self::Nodes(_) => "numa-placement",
            Self::Blocks => "tables-in-blocks",
            Self::SmallTable { .. } => "small-table",
            Self::OddWidth(_) => "odd-width",
            Self::NoCalibration(_) => "no-calibration",
            Self::CalibrationDisagrees(_) => "calibration-disagrees",
            Self::PoolShort { .. } => "pool-short",
            Self::LeftOut { .. } => "page-left-out",
            Self::Spoiled { .. } => "trials-spoiled",
            Self::TrialsApart { .. } => "trials-apart",
            Self::CellsApart { .. } => "cells-apart",
            Self::PagesUnknown { .. } => "pages-unknown",
            Self::OtherPages { .. } => "other-pages",
            Self::TransparentShort { .. } => "thp-short",
            Self::TransparentUnasked { .. } => "thp-unasked",
        }
    }

    /// As results carry it.
    pub(super) fn saved(&self) -> bench::Warning {
        bench::Warning { id: self.id().to_owned(), text: self.to_string() }
    }
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
    fn every_warning_is_of_a_listed_kind() {
        let (page, row_bytes, got, table) = ("2m", 128, Bytes::KIB_4, Bytes::GIB_1);
        let text = String::new;
        let all = [
            Warning::FewTrials(3),
            Warning::Nodes(2),
            Warning::Blocks,
            Warning::SmallTable { row_bytes, table },
            Warning::OddWidth(7),
            Warning::NoCalibration(text()),
            Warning::CalibrationDisagrees(text()),
            Warning::PoolShort { page, row_bytes, need: 2, got: 1 },
            Warning::LeftOut { page, row_bytes, why: text() },
            Warning::Spoiled { trials: 1, guards: text() },
            Warning::TrialsApart { trials: 1 },
            Warning::CellsApart { page, row_bytes, rates: text() },
            Warning::PagesUnknown { page },
            Warning::OtherPages { page, got },
            Warning::TransparentShort { got, table },
            Warning::TransparentUnasked { got },
        ];
        let ids = all.map(|warning| warning.id());
        assert_eq!(ids.to_vec(), KINDS.iter().map(|kind| kind.id).collect::<Vec<_>>());
        let unique: std::collections::BTreeSet<&str> = ids.into_iter().collect();
        assert_eq!(unique.len(), KINDS.len());
        assert!(unique.iter().all(|id| untax_core::evidence::is_kebab(id)));
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
