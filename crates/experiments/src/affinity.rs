//! `bench affinity`: instances without affinity, in hard partitions, and with the soft affinity of
//! `untax steer`, where one or two of them are busy.
//!
//! A trial starts the loads, then steering, lets both settle, and counts work for the rest. Servers and their
//! clients get the same CPUs, as the published tables have it: a server whose clients take its CPUs from
//! elsewhere would be another experiment.

mod arguments;
mod entry;
mod family;
mod hackbench;
mod instance;
pub mod model;
mod observed;
mod steerer;
mod trial;
mod ways;

pub use entry::EXPERIMENT;
