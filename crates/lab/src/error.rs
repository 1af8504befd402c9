//! What can go wrong in the lab, each with the next action.

use untax_scenes::SceneError;

/// Why a cause could not be put on a database.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The server, its load or something around it could not be had.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// A cause cannot be had here.
    #[error("{cause} cannot be made here: {why}")]
    Impossible {
        /// The cause's id.
        cause: &'static str,
        /// Why not.
        why: String,
    },
    /// A cause killed the server instead of slowing it.
    #[error("{cause} had a process of the server killed for its memory; try a shorter window")]
    Killed {
        /// The cause's id.
        cause: &'static str,
    },
}
