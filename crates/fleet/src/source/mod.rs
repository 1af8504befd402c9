//! Where rows come from.

mod agents;
mod error;
mod prometheus;

pub use agents::agents;
pub use error::FleetError;
pub use prometheus::prometheus;
