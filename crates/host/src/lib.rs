//! The host, read through one injected [`Host`]: the live machine or a captured tree.

pub mod capture;
pub mod cgroup;
pub mod command_line;
pub mod digest;
pub mod facts;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod live;
mod moment;
pub mod mountinfo;
mod patience;
mod pressure;
pub mod process;
mod record;

pub use capture::{Capture, CaptureError};
#[doc(hidden)]
pub use fuzz::fuzz_parsers;
pub use live::{Host, Snooped};
pub use patience::patiently;
pub use record::Record;
