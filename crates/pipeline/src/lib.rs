//! How untax looks at a host: options → session → windows → check.
//!
//! This crate knows no command line and no terminal, saves nothing and prints nothing. Commands, the
//! lab and whatever watches for a long time call it; what a caller decides (where a calibration is
//! kept, when to stop) comes in as values and traits.
//!
//! A program that uses it must run [`untax_engines::answer_main`] for its hidden subcommand `__ask`:
//! servers are asked by a child process.

mod calibration;
mod error;
mod options;
mod own_cost;
mod session;
mod snapshot;
mod stream;

pub use calibration::{Calibrating, NO_PATH_COSTS, PageCosts};
pub use error::PipelineError;
pub use options::{Options, Target, WINDOW_LENGTHS};
pub use session::{Observed, Session, Step};
pub use snapshot::{replay, take};
pub use stream::{Event, stream};
