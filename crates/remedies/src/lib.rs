//! From findings to a proven gain: a plan, its steps done and undone, and the proof by A/B.
//!
//! The planner is pure: it reads a saved check and writes nothing. Only the executor changes a
//! host, and only what a step says.

mod arguments;
mod basis;
pub mod executor;
mod grubby;
mod lint;
mod planner;
pub mod receipts;
mod remedies;
mod sizing;
mod systemd;
pub mod target;
mod tree;
pub mod verify;
pub mod workload;
pub mod workloads;

pub use basis::{basis, differences};
pub use executor::{ExecutorError, Undone, apply, standing, undo};
pub use lint::overcommit;
pub use planner::{PlanError, Wish, intact, plan, sealed};
pub use receipts::{Receipt, ReceiptError};
pub use remedies::{REMEDIES, Remedy};
pub use tree::Tree;
