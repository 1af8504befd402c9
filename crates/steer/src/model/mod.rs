//! A model of a machine with several nodes: not a measurement.
//!
//! It has two constants, which were fitted to nothing measured here: what a task loses because others of its
//! instance run on other nodes ([`Load::coherence`]), for a database and for `hackbench`. It is an
//! instrument for tests of the policy, and shows the order of ways to place tasks, not what they are worth.

mod machine;
mod table;

pub use machine::{Load, Machine, Mode, Outcome, simulate};
pub use table::{Row, Size, table};

/// What every result of the model is called.
pub const LABEL: &str = "model, not measured";
