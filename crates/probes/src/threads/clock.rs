//! The clocks that tracing is timed by.

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread.
pub(super) fn own_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Nanoseconds of the clock that BPF programs read.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Neither is negative, and together they fit for centuries.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
