//! The host, read through one injected [`Host`]: the live machine or a captured tree.

pub mod capture;
pub mod cgroup;
pub mod command_line;
pub mod facts;
mod files;
mod live;
mod moment;
pub mod process;
mod record;

pub use capture::{Capture, CaptureError};
pub use live::{Host, Snooped};
pub use record::Record;
