//! The host, read through one injected [`Host`]: the live machine or a captured tree.

pub mod capture;
mod captured;
pub mod cgroup;
pub mod command_line;
mod deadline;
pub mod digest;
pub mod elf;
pub mod facts;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod host;
pub mod lookup;
pub mod mountinfo;
mod netlink;
pub mod nft_diag;
mod node_files;
mod nothing;
mod pressure;
pub mod process;
mod record;
pub mod sock_diag;
pub mod trials;

pub use capture::{Capture, CaptureError};
pub use deadline::with_deadline;
#[doc(hidden)]
pub use fuzz::fuzz_parsers;
pub use host::{Host, KeptLine};
pub use nothing::nothing;
pub use record::Record;
