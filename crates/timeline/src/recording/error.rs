//! Why a recording cannot be written or read.

use std::path::PathBuf;
use untax_core::format::NewerFormat;

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be opened, written or read.
    #[error("{} cannot be {}", .0.display(), .1)]
    File(PathBuf, &'static str, #[source] std::io::Error),
    /// It is something else.
    #[error("{} is no recording of untax; untax watch --record writes one", .0.display())]
    Other(PathBuf),
    /// A later version wrote it.
    #[error("{}", .0.display())]
    Newer(PathBuf, #[source] NewerFormat),
    /// Another process writes it.
    #[error("{} is being written by another process; record to another file", .0.display())]
    Busy(PathBuf),
    /// It holds no window.
    #[error("{} holds no window yet: the first ones are written after a minute", .0.display())]
    Empty(PathBuf),
}
