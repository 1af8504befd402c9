//! Where rows come from.

mod agents;
mod error;
mod hosts;
mod prometheus;
mod ssh;

pub use agents::agents;
pub use error::FleetError;
pub use hosts::{hosts, hosts_of};
pub use prometheus::{Over, Range, at_once, over_time, prometheus};
pub use ssh::{Copied, Ssh};
