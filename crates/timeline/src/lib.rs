//! Windows over time: recordings, and the causes of a change of throughput.
//!
//! Windows are recorded as numbers and facts by name ([`Moment`]). A [`History`] of them, from a recording or from
//! Prometheus, becomes a [`Timeline`](untax_core::timeline::Timeline): pure, so that a recording of a stranger's
//! host is explained here as it was there.

mod causes;
mod changed;
mod explain;
mod history;
mod memory_moves;
mod moment;
mod observed;
mod prometheus;
mod recording;
mod scene;
mod series;
mod storage;
mod stretches;
mod timeline;

pub use history::History;
pub use moment::{Moment, Values};
pub use observed::moment;
pub use prometheus::history as prometheus;
pub use recording::{Frame, Recorder, RecordingError, SCHEMA as RECORDING_SCHEMA, read};
pub use timeline::timeline;
