//! From findings to a plan.
//!
//! The planner is pure: it reads a saved check and writes nothing. `untax_changes` does the steps
//! of a plan, and undoes them.

mod arguments;
mod lint;
mod planner;
mod preconditions;
mod remedies;
mod sizing;
mod systemd;
pub mod workload;
pub mod workloads;

pub use lint::overcommit;
pub use planner::{PlanError, Wish, intact, plan, sealed};
pub use preconditions::{basis, differences};
pub use remedies::{REMEDIES, Remedy};
