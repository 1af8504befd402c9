//! What can go wrong with `bench locality`.

use std::path::PathBuf;
use untax_pipeline::PipelineError;
use untax_scenes::SceneError;
use untax_timeline::RecordingError;
use untax_trials::Interrupted;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum LocalityError {
    /// It was refused before anything was started.
    #[error("{0}")]
    Refused(String),
    /// It was interrupted before the first window.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The server, its load, its limits or its disks.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// The server could not be watched.
    #[error(transparent)]
    Watching(#[from] PipelineError),
    /// The windows could not be recorded, or read again.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Files of the server could not be handled.
    #[error("{} cannot be {}", .0.display(), .1)]
    File(PathBuf, &'static str, #[source] std::io::Error),
    /// Something of this program is broken.
    #[error("the recorder ended by a fault of this program; please report it")]
    Fault,
}
