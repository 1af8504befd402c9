//! From a window and its check to samples: pure.

mod database;
mod disks;
mod node;
mod taxes;

pub(crate) use database::of_database;
pub(crate) use node::{of_agent, of_node};
