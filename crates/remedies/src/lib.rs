//! From findings to a plan.
//!
//! The planner is pure: it reads a saved check and writes nothing. `untax_changes` does the steps
//! of a plan, and undoes them.

mod case;
mod harm;
mod lint;
mod managed;
mod node_classes;
mod own_cpus;
mod planner;
mod pool_plan;
mod preconditions;
pub mod rate;
mod remedies;
mod remedy;
mod sizing;
mod sysctl;
mod systemd;
pub mod workloads;

pub use case::Wish;
pub use harm::harms;
pub use lint::overcommit;
pub use node_classes::{ClassesError, Seen, node_classes};
pub use planner::{PlanError, intact, is_significant, plan, sealed};
pub use preconditions::{basis, differences};
pub use remedies::{KEEP_CPUS_AWAKE, REMEDIES};
pub use remedy::Remedy;
