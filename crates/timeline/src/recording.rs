//! Recordings: windows on disk, compact, readable by every later version.

mod error;
mod file;
pub(crate) mod frame;
mod reader;
mod writer;

pub use error::RecordingError;
pub use file::SCHEMA;
pub use frame::Frame;
pub use reader::read;
pub use writer::Recorder;
