//! How much the networks of databases send, from moment to moment: what they do while nothing is lost
//! tells what is left when nothing is.

use std::time::{Duration, Instant};
use untax_core::window::Sent;
use untax_core::{Database, Reading};
use untax_host::{Host, process};

/// Networks beyond so many are not looked at, to bound what it costs.
const MOST: usize = 8;

/// A window has so many moments at most, of 50 ms at least.
const MOMENTS: u32 = 200;

/// Watches until it is dropped.
pub struct Sending {
    step: Duration,
    last: Instant,
    networks: Vec<Network>,
}

/// A network, with all that use it.
struct Network {
    namespace: Reading<String>,
    sent: Option<process::Sent>,
    databases: Vec<String>,
    segments_per_s: Vec<f64>,
    /// Segments so far.
    segments: Option<u64>,
}

impl Sending {
    /// Begins to watch over a window of this length.
    pub fn begin(host: &Host, databases: &[Database], window: Duration) -> Self {
        let mut networks: Vec<Network> = Vec::new();
        for Database { id, pid, .. } in databases {
            let namespace = host.link(&format!("/proc/{pid}/ns/net"));
            let same = |n: &&mut Network| namespace.is_present() && n.namespace == namespace;
            if let Some(network) = networks.iter_mut().find(same) {
                network.databases.push(id.clone());
            } else if networks.len() < MOST {
                let sent = process::Sent::from(*pid);
                let segments = sent.as_ref().and_then(process::Sent::segments);
                let (databases, segments_per_s) = (vec![id.clone()], Vec::new());
                networks.push(Network { namespace, sent, databases, segments_per_s, segments });
            }
        }
        Self { step: window / MOMENTS, last: Instant::now(), networks }
    }

    /// A moment ends, if it was long enough.
    pub fn tick(&mut self) {
        let passed = self.last.elapsed();
        if passed < self.step || passed.is_zero() {
            return;
        }
        self.last = Instant::now();
        for network in &mut self.networks {
            let now = network.sent.as_ref().and_then(process::Sent::segments);
            let grown = now.zip(network.segments).and_then(|(now, then)| now.checked_sub(then));
            let rate = grown.map(|grown| grown as f64 / passed.as_secs_f64());
            network.segments_per_s.extend(rate);
            network.segments = now;
        }
    }

    /// What was sent in each moment.
    pub fn end(&mut self) -> Vec<Sent> {
        let sent = |network: Network| {
            let segments_per_s = network.segments_per_s;
            let of = move |database| Sent { database, segments_per_s: segments_per_s.clone() };
            network.databases.into_iter().map(of)
        };
        self.networks.drain(..).flat_map(sent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_as_long_as_it_was() {
        let database = |pid| Network {
            namespace: Reading::Absent(String::new()),
            sent: process::Sent::from(pid),
            databases: vec!["redis:1".to_owned(), "redis:2".to_owned()],
            segments_per_s: Vec::new(),
            segments: Some(0),
        };
        let mut sending = Sending {
            step: Duration::from_millis(1),
            last: Instant::now(),
            // This machine's own network, and a process that cannot be.
            networks: vec![database(std::process::id()), database(u32::MAX)],
        };
        std::thread::sleep(Duration::from_millis(2));
        sending.tick();
        sending.step = Duration::from_secs(60);
        sending.tick();
        let counts: Vec<usize> = sending.end().iter().map(|s| s.segments_per_s.len()).collect();
        assert_eq!(counts, [1, 1, 0, 0]);
    }
}
