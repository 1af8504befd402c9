//! `bench pages`: what page size is worth on this very machine.
//!
//! A table in shared memory is read by primary key from many connections, without sockets and
//! with warm data, once on each page size. See `docs` of [`table`] for what a read is, of
//! [`plan`] for the order of trials, and of [`run()`] for what happens to the host meanwhile.

mod agreement;
mod arguments;
pub mod capacity;
pub mod control;
mod engine;
mod entry;
mod error;
#[cfg(test)]
mod example;
mod html;
pub mod job;
pub mod keys;
mod method;
pub mod options;
mod page_pools;
pub mod plan;
pub mod readers;
#[cfg(test)]
mod report_tests;
mod results;
mod run;
pub mod schema;
mod summary;
pub mod table;
mod tables;
mod terminal;
pub mod transparent;
mod trials;
mod warnings;

pub use capacity::Capacity;
pub use entry::{EXPERIMENT, SERVERS};
pub use error::BenchError;
pub use options::{Access, Model, Page, Request};
pub use plan::{Plan, Refusal};
pub use run::run;
pub use schema::PagesBench;
