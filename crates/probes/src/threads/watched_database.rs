//! A database whose threads are being watched.

use untax_core::Seconds;
use untax_core::activity;

/// What is known of it, and what its threads did in this window.
pub(super) struct WatchedDatabase {
    pub(super) database: String,
    /// Its main process.
    pub(super) pid: u32,
    pub(super) threads: u32,
    /// Whether it is known where its processes share its data.
    pub(super) data_known: bool,
    /// Whether its control group may be limited.
    pub(super) limited: bool,
    pub(super) slices: Vec<activity::Unsettled>,
    /// `struct total` of threads.h as it was when the window opened.
    pub(super) opened_ns: Vec<u64>,
    /// The same as it was taken last.
    pub(super) total_ns: Vec<u64>,
}

impl WatchedDatabase {
    /// Its last slice stands for so much of a pause; gives how much that is, nothing without one.
    pub(super) fn add_pause(&mut self, paused_s: Seconds) -> Seconds {
        let last = self.slices.last_mut().map(|last| &mut last.slice);
        let stands_for_s = last.and_then(|last| last.stands_for_s.as_mut());
        stands_for_s.map_or(Seconds(0.0), |stands_for_s| {
            *stands_for_s = *stands_for_s + paused_s;
            paused_s
        })
    }
}
