//! What prices stand on, and a price from it.

use super::kept::Kept;
use super::nearest::Key;
use super::paired::{self, Over};
use crate::network::exchange::SERVER_CPU;
use crate::platform::PlatformBench;
use untax_core::Interval;
use untax_core::advice::{Method, Price};

/// What the prices of all alternatives of one database stand on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Basis {
    /// A cell whose server is of its engine.
    Cell {
        key: Key,
        /// In what it is not like the load.
        note: Option<String>,
    },
    /// A cell of round trips; so many of them each request makes, and takes so long on CPU.
    RoundTrips { key: Key, trips: Interval, cpu_us: f64 },
    /// A cell that times an access of a disk; for such accesses the database waits this share of its time.
    DiskShare { key: Key, share: f64 },
    /// Nothing, for this reason.
    Unknown(String),
    /// Nothing, as the database leaves nothing to this layer: a sentence.
    Unneeded(String),
}

impl Basis {
    /// The cell that it stands on.
    pub(super) fn key(&self) -> Option<&Key> {
        match self {
            Self::Cell { key, .. } | Self::RoundTrips { key, .. } | Self::DiskShare { key, .. } => {
                Some(key)
            }
            Self::Unknown(_) | Self::Unneeded(_) => None,
        }
    }

    /// Whether an arm has a figure in its cell.
    pub(super) fn is_measured_with(&self, kept: &Kept, arm: &str) -> bool {
        let cells = kept.results.iter().filter_map(|bench| self.key()?.cell(bench));
        cells.into_iter().any(|cell| paired::has(cell, arm))
    }

    /// What an arm costs over another: by the latest result that has both.
    pub(super) fn price(&self, kept: &Kept, arm: &str, over: &str) -> Option<Price> {
        let key = self.key()?;
        kept.results.iter().find_map(|bench| self.price_of(key, bench, arm, over))
    }

    fn price_of(&self, key: &Key, bench: &PlatformBench, arm: &str, over: &str) -> Option<Price> {
        let cell = key.cell(bench)?;
        let Over { time, verdict, pairs } = paired::over(cell, arm, over)?;
        let (factor, method, note) = match self {
            Self::Cell { note, .. } => (time, Method::Measured, note.clone()),
            Self::RoundTrips { trips, cpu_us, .. } => {
                let more_us = paired::more(cell, SERVER_CPU, arm, over)?;
                (of_round_trips(more_us, *trips, *cpu_us), Method::RoundTrips, None)
            }
            Self::DiskShare { share, .. } => {
                (time.map(|time| 1.0 - share + share * time), Method::DiskShare, None)
            }
            Self::Unknown(_) | Self::Unneeded(_) => return None,
        };
        Some(Price {
            factor: factor.into(),
            verdict,
            method,
            cell: key.name(),
            bench: bench.run.clone(),
            pairs,
            note,
        })
    }
}

/// What a server's CPU takes for a request, with so much more for each of so many round trips.
fn of_round_trips(more_us: Interval, trips: Interval, cpu_us: f64) -> Interval {
    let corners = [trips.low, trips.high]
        .into_iter()
        .flat_map(|trips| [more_us.low, more_us.high].map(|us| trips * us));
    let bounds = |(low, high): (f64, f64), us: f64| (low.min(us), high.max(us));
    let (low, high) = corners.fold((f64::MAX, f64::MIN), bounds);
    let factor = |us: f64| (1.0 + us / cpu_us).max(0.0);
    Interval::new(factor(low), factor(trips.mid * more_us.mid), factor(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis GET was left out of the prediction: the CPU time that one more round trip takes of both ends over
    /// a wire's (µs), and how many times as long Redis took over that path. docs/results/advise.md.
    const LEFT_OUT: [(&str, f64, f64); 7] = [
        ("loopback", -0.39, 0.976),
        ("bridge", 1.81, 1.111),
        ("routed", 2.43, 1.160),
        ("nodes-ebpf", 2.65, 1.142),
        ("services-iptables-1", 4.98, 1.291),
        ("nodes-vxlan", 9.14, 1.541),
        ("policies-1000", 36.89, 3.171),
    ];

    /// The CPU time of both ends for a GET over the wire, µs.
    const GET_CPU_US: f64 = 20.24;

    #[test]
    fn round_trips_predict_a_server_that_was_left_out_within_a_fifth() {
        for (path, more_us, measured) in LEFT_OUT {
            let predicted =
                of_round_trips(Interval::exact(more_us), Interval::exact(1.0), GET_CPU_US);
            let off = (predicted.mid / measured - 1.0).abs();
            assert!(off < 0.2, "{path}: {} predicted, {measured} measured", predicted.mid);
        }
    }

    #[test]
    fn a_cheaper_round_trip_has_its_bounds_the_right_way_round() {
        let factor =
            of_round_trips(Interval::new(-2.0, -1.0, 0.5), Interval::new(1.0, 2.0, 3.0), 10.0);
        assert_eq!((factor.low, factor.mid, factor.high), (1.0 - 0.6, 1.0 - 0.2, 1.0 + 0.15));
    }
}
