//! `bench locality`: throughput is changed on purpose, step by step, and what `untax timeline` says of it is put
//! beside what was done.
//!
//! A PostgreSQL has little processor time and its tables on a slow disk. Then it gets more time, and its tablespaces
//! move one by one to a fast disk, as data that becomes local after a move to another host. Windows are recorded all
//! the while, by the recorder of `untax watch --record`, and explained by the timeline that explains every recording.
//! It compares no arms: there are no trials and no ratio.

mod action;
mod arguments;
mod entry;
mod error;
mod guard;
mod html;
mod judge;
mod limits;
mod record;
mod run;
mod scene;
pub mod schema;
mod server;
mod terminal;
mod words;

#[cfg(test)]
mod example;

pub use entry::EXPERIMENT;
