//! Every database of a fleet in one answer: what each loses to the platform, which causes take most, and
//! which nodes say nothing.
//!
//! Sources give rows of the agents' metrics; the ranking is pure.

mod fleet;
mod page;
mod rank;
mod row;
mod source;
mod terminal;

pub use fleet::{Cause, Database, Fleet, Group, SCHEMA, Silent};
pub use page::page;
pub use rank::rank;
pub use row::{Row, Rows};
pub use source::{
    Copied, FleetError, Over, Range, Ssh, agents, at_once, hosts, hosts_of, over_time, prometheus,
};
pub use terminal::terminal;
pub use untax_agent::Client;
