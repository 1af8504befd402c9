//! What can go wrong with a bench of page sizes.

use super::options::Page;
use super::plan::Refusal;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use untax_changes::{PoolError, TemporaryError};
use untax_trials::Interrupted;

/// Why a bench ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// It was refused before anything was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Memory and pools of this machine could not be read.
    #[error("memory and page pools of this machine could not be read")]
    Capacity(#[source] io::Error),
    /// A pool could not be changed.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Transparent huge pages could not be allowed.
    #[error("transparent huge pages could not be allowed for shared memory")]
    Transparent(#[source] io::Error),
    /// What a bench changes would not be put back, or was not.
    #[error(transparent)]
    Temporary(#[from] TemporaryError),
    /// A child process did not start.
    #[error("a child process did not start")]
    Start(#[source] io::Error),
    /// The memory of a table could not be had.
    #[error("a table on {} pages could not be made", page.id())]
    Table {
        /// The page.
        page: Page,
        /// What went wrong.
        source: io::Error,
    },
    /// A table could not be filled.
    #[error("the table on {} pages could not be filled: the filler {}", page.id(), ending(*status))]
    Filler {
        /// The page.
        page: Page,
        /// How the filler ended.
        status: ExitStatus,
    },
    /// A reader ended by itself.
    #[error("a reader of the table on {} pages {}", page.id(), ending(*status))]
    Reader {
        /// The page.
        page: Page,
        /// How it ended.
        status: ExitStatus,
    },
    /// A row did not hold what it must.
    #[error(
        "row {row} of the table on {} pages did not hold what was written; test this machine's \
         memory",
        page.id()
    )]
    Corrupt {
        /// The page.
        page: Page,
        /// The row.
        row: u64,
    },
    /// The page tables of a living reader could not be read.
    #[error("the page tables of reader {pid} could not be read")]
    PageTables {
        /// The reader.
        pid: u32,
    },
    /// It was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl BenchError {
    /// Whether it may be that the memory for one page size was not to be had after all, by a
    /// limit that shows only when pages are touched: the others may still be tried.
    pub(crate) fn is_about_memory(&self) -> bool {
        matches!(self, Self::Table { .. } | Self::Filler { .. } | Self::Reader { .. })
    }
}

/// How a child ended, and what to do about it where that is known.
fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(7) => "died of a bus error: its cgroup allows fewer huge pages than the table needs; \
                    raise hugetlb.*.max, or choose fewer --rows"
            .to_owned(),
        Some(9) => "was killed: out of memory, or by hand; choose fewer --rows".to_owned(),
        _ => format!("ended with {status}"),
    }
}
