//! What network paths cost on this very host, as `bench network` measured it.

use crate::Interval;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What paths cost more than one virtual wire, and how services add to that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PathCosts {
    /// The bench's run.
    pub run: String,
    /// When it was measured.
    pub taken_at: Timestamp,
    /// The processor it holds for.
    pub cpu_model: String,
    /// The kernel it holds for.
    pub kernel_release: String,
    /// What a round trip of one byte takes more, with client and server on one CPU.
    pub round_trips: Vec<RoundTrip>,
    /// What a thousand services or rules add to a connection.
    pub connections: Vec<Connections>,
}

/// A path's round trip over that of a wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoundTrip {
    /// The bench's arm, such as `nodes-vxlan`.
    pub path: String,
    /// Microseconds more.
    pub extra_us: Interval,
}

/// How a new connection's time grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Connections {
    /// The bench's series, such as `services-iptables`.
    pub series: String,
    /// Microseconds that a thousand more add.
    pub per_thousand_us: Interval,
}

impl PathCosts {
    /// What a path's round trip takes more; of a path with a number, the one with the smallest.
    pub fn round_trip(&self, path: &str) -> Option<&RoundTrip> {
        let number = |trip: &RoundTrip| match trip.path.strip_prefix(path)? {
            "" => Some(0),
            rest => rest.strip_prefix('-')?.parse::<u32>().ok(),
        };
        let known = self.round_trips.iter().filter_map(|trip| Some((number(trip)?, trip)));
        known.min_by_key(|(number, _)| *number).map(|(_, trip)| trip)
    }

    /// What so many services or rules add to a new connection, microseconds.
    pub fn connection_us(&self, series: &str, count: u64) -> Option<Interval> {
        let of = self.connections.iter().find(|connections| connections.series == series)?;
        Some(of.per_thousand_us.map(|us| us * count as f64 / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_by_its_id_or_with_its_smallest_number() {
        let trip =
            |path: &str, us| RoundTrip { path: path.to_owned(), extra_us: Interval::exact(us) };
        let costs = PathCosts {
            run: String::new(),
            taken_at: Timestamp::UNIX_EPOCH,
            cpu_model: String::new(),
            kernel_release: String::new(),
            round_trips: vec![
                trip("routed", 1.0),
                trip("services-iptables-1000", 5.0),
                trip("services-iptables-1", 2.0),
            ],
            connections: vec![Connections {
                series: "services-iptables".to_owned(),
                per_thousand_us: Interval::new(8.0, 9.0, 11.0),
            }],
        };
        assert_eq!(costs.round_trip("routed").unwrap().extra_us, Interval::exact(1.0));
        assert_eq!(costs.round_trip("services-iptables").unwrap().extra_us, Interval::exact(2.0));
        assert_eq!(costs.round_trip("services"), None);
        let added = costs.connection_us("services-iptables", 2000).unwrap();
        assert_eq!(added, Interval::new(16.0, 18.0, 22.0));
        assert_eq!(costs.connection_us("services-nft", 5), None);
    }
}
