//! From findings to a plan.
//!
//! The planner is pure: it reads a saved check and writes nothing. `untax_changes` does the steps
//! of a plan, and undoes them.

mod arguments;
mod case;
mod lint;
mod planner;
mod preconditions;
pub mod rate;
mod remedies;
mod remedy;
mod sizing;
mod systemd;
pub mod workloads;

pub use case::Wish;
pub use lint::overcommit;
pub use planner::{PlanError, intact, plan, sealed};
pub use preconditions::{basis, differences};
pub use remedies::REMEDIES;
pub use remedy::Remedy;
