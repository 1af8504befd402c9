//! The clock by which the main process and the one that asks a server tell moments.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since boot, as `/proc/uptime` counts them.
pub(crate) fn since_boot_us() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}
