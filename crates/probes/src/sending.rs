//! How much the networks of databases send, from moment to moment: what they do while nothing is lost
//! tells what is left when nothing is.

use std::time::{Duration, Instant};
use untax_core::Database;
use untax_core::window::Sent;
use untax_host::{Host, process};

/// Databases beyond so many are not looked at, to bound what it costs: some 20 us for each moment.
const MOST: usize = 8;

/// A window has so many moments at most, of 50 ms at least.
const MOMENTS: u32 = 200;

/// Watches until it is dropped.
pub struct Sending {
    step: Duration,
    last: Instant,
    networks: Vec<Network>,
}

/// The network of one database, with all that use it.
struct Network {
    pid: u32,
    sent: Sent,
    /// Segments so far.
    segments: Option<u64>,
}

impl Sending {
    /// Begins to watch over a window of this length.
    pub fn begin(host: &Host, databases: &[Database], window: Duration) -> Self {
        let network = |database: &Database| Network {
            pid: database.pid,
            sent: Sent { database: database.id.clone(), segments_per_s: Vec::new() },
            segments: process::sent_segments(host, database.pid).into_value(),
        };
        let networks = databases.iter().take(MOST).map(network).collect();
        Self { step: window / MOMENTS, last: Instant::now(), networks }
    }

    /// A moment ends, if it was long enough.
    pub fn tick(&mut self, host: &Host) {
        let passed = self.last.elapsed();
        if passed < self.step || passed.is_zero() {
            return;
        }
        self.last = Instant::now();
        for network in &mut self.networks {
            let now = process::sent_segments(host, network.pid).into_value();
            // Of another namespace, or gone.
            let grown = now.zip(network.segments).and_then(|(now, then)| now.checked_sub(then));
            let rate = grown.map(|grown| grown as f64 / passed.as_secs_f64());
            network.sent.segments_per_s.extend(rate);
            network.segments = now;
        }
    }

    /// What was sent in each moment.
    pub fn end(&mut self) -> Vec<Sent> {
        self.networks.drain(..).map(|network| network.sent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_as_long_as_it_was() {
        let host = Host::live();
        let database = |pid| Network {
            pid,
            sent: Sent { database: "redis:1".to_owned(), segments_per_s: Vec::new() },
            segments: Some(0),
        };
        let mut sending = Sending {
            step: Duration::from_millis(1),
            last: Instant::now(),
            // This machine's own network, and a process that cannot be.
            networks: vec![database(std::process::id()), database(u32::MAX)],
        };
        std::thread::sleep(Duration::from_millis(2));
        sending.tick(&host);
        sending.step = Duration::from_secs(60);
        sending.tick(&host);
        let counts: Vec<usize> = sending.end().iter().map(|s| s.segments_per_s.len()).collect();
        assert_eq!(counts, [1, 0]);
    }
}
