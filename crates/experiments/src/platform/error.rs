//! What can go wrong.

use std::path::PathBuf;
use untax_core::Bytes;
use untax_trials::{Interrupted, SavedError};

/// Why an arm did not come up for a cell, or a trial gave nothing: that cell of that arm is left out with the
/// reason, and all others go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The whole bench was asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// Whatever it was, in words that name the next action.
    #[error("{0}")]
    Failed(String),
}

impl Trouble {
    /// Of an error and all that stand behind it.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let chain = std::iter::successors(Some(error), |error| error.source());
        Self::Failed(chain.map(ToString::to_string).collect::<Vec<_>>().join(": "))
    }
}

/// Why a bench has no result.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    /// The arguments make no sense here.
    #[error("{0}")]
    Usage(String),
    /// It was refused before anything was started.
    #[error("{0}")]
    Refused(String),
    /// Too little memory.
    #[error(
        "this bench needs {need} of memory, and {available} are available; free some, or choose other --workloads"
    )]
    Memory {
        /// What it needs.
        need: Bytes,
        /// `MemAvailable`.
        available: Bytes,
    },
    /// Too little space.
    #[error("this bench needs {need} of disk in {}, which has {available}; free some, or set TMPDIR", directory.display())]
    Disk {
        /// What it needs.
        need: Bytes,
        /// What is free.
        available: Bytes,
        /// Where.
        directory: PathBuf,
    },
    /// Trials of an earlier run cannot be read, or new ones not saved.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// It was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}
