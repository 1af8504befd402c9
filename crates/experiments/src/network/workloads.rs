//! What is measured over each path.

use super::peers::Kind;
use crate::platform::{Better, Placement, Published, Workload};
use std::time::Duration;
use untax_scenes::find_program;

/// The work of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Our own server and client.
    Exchange { kind: Kind, connections: u32 },
    /// redis-benchmark.
    RedisGet,
    /// pgbench, reading rows; over a connection for each transaction or over those that stay.
    Pgbench { reconnects: bool },
}

/// Connections of the loads that have several: enough to keep one CPU busy, and no more than a small pool.
const SEVERAL: u32 = 16;

/// Connections of databases' loads.
pub(super) const CLIENTS: u32 = 8;

const LOADS: [(&str, Load); 8] = [
    ("rr", Load::Exchange { kind: Kind::Tcp, connections: 1 }),
    ("crr", Load::Exchange { kind: Kind::TcpConnect, connections: 1 }),
    ("rr16", Load::Exchange { kind: Kind::Tcp, connections: SEVERAL }),
    ("udp-rr", Load::Exchange { kind: Kind::Udp, connections: 1 }),
    ("redis-get", Load::RedisGet),
    ("pgbench", Load::Pgbench { reconnects: false }),
    ("pgbench-connect", Load::Pgbench { reconnects: true }),
    ("stream", Load::Exchange { kind: Kind::Stream, connections: 1 }),
];

impl Load {
    /// The load of a workload's id.
    pub(super) fn of(id: &str) -> Option<Self> {
        LOADS.iter().find(|(known, _)| *known == id).map(|(_, load)| *load)
    }
}

/// All of them, the most telling first.
pub(super) fn all() -> Vec<Workload> {
    LOADS.iter().map(|(id, load)| workload(id, *load)).collect()
}

/// Of round trips: some 30,000 of them on one CPU, whose median varies by 1 % between blocks.
const SHORT: Duration = Duration::from_millis(250);

fn workload(id: &str, load: Load) -> Workload {
    let (summary, unit, better) = described(load);
    let work = Workload::new(id, summary, unit, better);
    match load {
        Load::Exchange { kind: Kind::Stream, .. } => Workload {
            trial: Duration::from_millis(500),
            start: Duration::from_millis(50),
            placements: vec![Placement::OneCore, Placement::TwoCores],
            ..work
        },
        Load::Exchange { kind, connections } => Workload {
            trial: SHORT,
            start: Duration::from_millis(120),
            // With one client the scheduler's choice is the largest factor of all: it is shown beside.
            placements: if kind == Kind::Tcp && connections == 1 {
                vec![Placement::OneCpu, Placement::TwoCores]
            } else {
                vec![Placement::OneCpu]
            },
            is_usual: true,
            is_quick: matches!(kind, Kind::Tcp | Kind::TcpConnect) && connections == 1,
            ..work
        },
        Load::RedisGet => Workload {
            trial: Duration::from_millis(700),
            start: Duration::from_millis(500),
            is_usual: true,
            published: published(),
            cannot: lacking(&[
                ("redis-server", "redis-server"),
                ("redis-benchmark", "redis-tools"),
            ]),
            ..work.standing_for("redis", false)
        },
        Load::Pgbench { reconnects } => Workload {
            trial: Duration::from_secs(2),
            start: Duration::from_millis(1500),
            cannot: lacking(&[("pgbench", "postgresql")]),
            ..work.standing_for("postgres", reconnects)
        },
    }
}

fn described(load: Load) -> (&'static str, &'static str, Better) {
    match load {
        Load::Exchange { kind: Kind::Tcp, connections: 1 } => {
            ("one byte there and back over one connection; median time", "us", Better::Lower)
        }
        Load::Exchange { kind: Kind::Tcp, .. } => {
            ("one byte there and back, 16 connections at a time; median time", "us", Better::Lower)
        }
        Load::Exchange { kind: Kind::TcpConnect, .. } => {
            ("a connection, one byte there and back, and its end; median time", "us", Better::Lower)
        }
        Load::Exchange { kind: Kind::Udp, .. } => {
            ("one datagram there and one back; median time", "us", Better::Lower)
        }
        Load::Exchange { kind: Kind::Stream, .. } => {
            ("as many bytes as one connection carries", "MB/s", Better::Higher)
        }
        Load::RedisGet => {
            ("redis-benchmark, GET over 10 connections", "requests/s", Better::Higher)
        }
        Load::Pgbench { reconnects: false } => {
            ("pgbench -S over 8 connections that stay, as a pool keeps them", "tps", Better::Higher)
        }
        Load::Pgbench { reconnects: true } => {
            ("pgbench -S, 8 clients with a connection for each transaction", "tps", Better::Higher)
        }
    }
}

/// Redis between pods over Redis between nodes: latency +33 % (19 to 46) with routing by the host, 0 % (−10
/// to +9) with eBPF; that bench's own noise was 12 %.
fn published() -> Vec<Published> {
    let source = "a published bench of Redis between nodes and pods, latency, noise 12 %";
    let of = |arm: &str, factor: f64| Published {
        arm: arm.to_owned(),
        factor,
        source: source.to_owned(),
    };
    vec![of("nodes-services-1", 1.0 / 1.33), of("nodes-ebpf", 1.0)]
}

/// Why programs are missing.
fn lacking(programs: &[(&str, &str)]) -> Option<String> {
    let missing = |(program, package): &(&str, &str)| find_program(program, package).err();
    programs.iter().find_map(missing).map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_a_load_and_an_id_of_its_own() {
        for workload in all() {
            assert!(Load::of(&workload.id).is_some());
            assert_eq!(all().iter().filter(|other| other.id == workload.id).count(), 1);
        }
        assert!(Load::of("rr17").is_none());
    }
}
