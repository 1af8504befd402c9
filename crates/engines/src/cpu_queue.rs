//! How long the queue for the CPUs makes a server's answer wait, beyond what it takes on a free CPU.

use std::time::Duration;
use untax_host::Host;

/// How long each that is before it runs: the scheduler's base slice is about 3 ms, and ends at a tick,
/// every 4 ms on most kernels.
const SLICE: Duration = Duration::from_millis(4);

/// How often an answer waits for its turn: the process that asks begins, connects and reads; the server
/// forks, its new process begins and answers. With 150 for each CPU at work it was 2 to 8 times.
const TURNS: u32 = 12;

/// A check that waits longer is not told from one that hangs.
const MOST: Duration = Duration::from_secs(10);

/// How much longer than on a free CPU an answer may take.
pub(crate) fn answer_waits(host: &Host) -> Duration {
    let loadavg = host.text("/proc/loadavg").into_value().unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (turn(&loadavg, cpus as u32) * TURNS).min(MOST)
}

/// How long until everybody who is runnable has run, by `/proc/loadavg`.
fn turn(loadavg: &str, cpus: u32) -> Duration {
    let runnable = loadavg.split(' ').nth(3).and_then(|field| field.split_once('/'));
    let runnable: u32 = runnable.and_then(|(runnable, _)| runnable.parse().ok()).unwrap_or(0);
    SLICE * runnable / cpus.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_a_slice_of_everybody_in_the_queue() {
        assert_eq!(turn("136.76 108.21 73.79 304/700 23700\n", 2), Duration::from_millis(608));
        assert_eq!(turn("0.00 0.01 0.05 1/80 99\n", 64), SLICE / 64);
        assert_eq!(turn("garbage", 2), Duration::ZERO);
    }
}
