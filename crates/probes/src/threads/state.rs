//! What is kept of the threads that are being watched.

use super::budget::SliceBudget;
use super::frequent_events::Runs;
use super::samples::{Places, Sampling};
use super::watched_database::WatchedDatabase;
use crate::bpf;
use crate::slots::Slots;
use std::collections::BTreeMap;
use untax_host::Host;

/// The threads of some databases, being watched until this value is dropped.
pub struct Threads {
    pub(super) bpf: bpf::Running,
    pub(super) host: Host,
    pub(super) slots: Slots,
    pub(super) watched: BTreeMap<u32, WatchedDatabase>,
    /// For how many threads the table has room.
    pub(super) room: u32,
    pub(super) budget: SliceBudget,
    /// What the last resuming took of a CPU, and both that and the last pausing.
    pub(super) resuming_s: f64,
    pub(super) pausing_s: f64,
    pub(super) begun_ns: u64,
    pub(super) slice: Slice,
    /// When the last slice ended.
    pub(super) taken_ns: u64,
    pub(super) messages: Messages,
    /// How often stacks are sampled in this slice, a second and CPU, if they can be, and what they
    /// tell apart; `sampling` is none where a slice goes without them, for what they cost before.
    pub(super) samples: Option<u32>,
    pub(super) sampling: Option<Sampling>,
    pub(super) places: Places,
    pub(super) failed: Option<libbpf_rs::Error>,
}

/// The slice that is being traced, or the pause after one.
pub(super) enum Slice {
    /// No window was opened yet.
    Unopened,
    Traced {
        since_ns: u64,
        /// What tracing had cost by then, where that is counted.
        cost_s: Option<f64>,
        /// The part of that for samples.
        samples_s: Option<f64>,
        runs: Runs,
    },
    Pause {
        until_ns: u64,
        cost_s: Option<f64>,
        /// What it may cost to see the ends of waits, where that is not free; none where they are not seen.
        waits_s: Option<f64>,
    },
}

/// Whether it is seen what threads send and receive.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// Now.
    pub(super) seen: bool,
    /// Since this window began.
    pub(super) seen_in_window: bool,
    /// This kernel cannot tell.
    pub(super) unknown: bool,
}
