//! All work of `bench runtime`, the most telling first.

use super::work::{Sequential, WorkKind};
use crate::network::peers::Kind as Exchange;
use crate::platform::{Better, Placement, Published, StandsFor, Workload};
use std::time::Duration;
use untax_core::Bytes;

/// What is done, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// sysbench's primes.
    Primes,
    /// Own work, in the arm.
    Own(WorkKind),
    /// Inserts, each a transaction, by the shell of `SQLite`.
    Sqlite,
    /// A test of redis-benchmark, with so many requests in flight on each connection.
    Redis { test: &'static str, pipeline: u32 },
    /// pgbench.
    Postgres { writes: bool, reconnect: bool },
    /// sysbench on MariaDB.
    MariaDb { writes: bool },
    /// Our own server in the arm, and its client outside.
    Exchange(Exchange),
    /// SVT-AV1 on frames that are made here.
    Encode,
    /// A command of the user's.
    Command,
}

/// When work is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Also with `--quick`.
    Quick,
    /// Where nothing else is asked for.
    Usual,
    /// By name.
    Named,
}

struct Entry {
    id: &'static str,
    summary: &'static str,
    unit: &'static str,
    better: Better,
    kind: Kind,
    when: When,
    /// Of one trial, and of bringing an arm up, milliseconds.
    trial_ms: u64,
    start_ms: u64,
    /// Published for runc and for gVisor with ptrace, over bare metal.
    published: Option<[f64; 2]>,
}

/// Container runtimes on a desktop of four cores with Ubuntu 18.04; digitised from its charts to 0.5 %.
const SOURCE: &str = "desktop of 2018, bare metal";

/// Of a large record.
const LARGE: usize = Bytes::MIB_2.0 as usize;
const BUFFERED: Sequential = Sequential { record_bytes: 256 << 10, direct: false };
const BUFFERED_LARGE: Sequential = Sequential { record_bytes: LARGE, direct: false };
const DIRECT: Sequential = Sequential { record_bytes: 256 << 10, direct: true };
const DIRECT_LARGE: Sequential = Sequential { record_bytes: LARGE, direct: true };

const fn entry(
    id: &'static str,
    summary: &'static str,
    unit: &'static str,
    kind: Kind,
    when: When,
) -> Entry {
    Entry {
        id,
        summary,
        unit,
        better: Better::Higher,
        kind,
        when,
        trial_ms: 1000,
        start_ms: 500,
        published: None,
    }
}

const fn redis(
    id: &'static str,
    summary: &'static str,
    test: &'static str,
    pipeline: u32,
    when: When,
    published: Option<[f64; 2]>,
) -> Entry {
    let kind = Kind::Redis { test, pipeline };
    Entry { published, start_ms: 900, ..entry(id, summary, "requests/s", kind, when) }
}

/// A server and a client of our own over the loopback of a namespace: what the stack of an arm costs, not a wire.
const fn exchange(
    id: &'static str,
    summary: &'static str,
    kind: Exchange,
    published: Option<[f64; 2]>,
) -> Entry {
    let (unit, better) = match kind {
        Exchange::Stream => ("MB/s", Better::Higher),
        _ => ("us", Better::Lower),
    };
    let entry = entry(id, summary, unit, Kind::Exchange(kind), When::Named);
    Entry { better, trial_ms: 500, start_ms: 400, published, ..entry }
}

const fn own(
    id: &'static str,
    summary: &'static str,
    kind: WorkKind,
    trial_ms: u64,
    published: Option<[f64; 2]>,
) -> Entry {
    let entry = entry(id, summary, "bytes/s", Kind::Own(kind), When::Named);
    Entry { trial_ms, published, ..entry }
}

/// The list.
static WORKLOADS: &[Entry] = &[
    redis("redis-get", "Redis GET, 10 clients", "get", 1, When::Quick, None),
    Entry {
        start_ms: 1500,
        ..entry(
            "postgres-read",
            "PostgreSQL, single rows by key (pgbench -S), 4 clients",
            "transactions/s",
            Kind::Postgres { writes: false, reconnect: false },
            When::Quick,
        )
    },
    Entry {
        better: Better::Lower,
        trial_ms: 400,
        ..entry(
            "system-calls",
            "one getpid; beside it first touch of a page, futex wake-up, read of 8 KiB",
            "ns/call",
            Kind::Own(WorkKind::Calls),
            When::Quick,
        )
    },
    Entry {
        published: Some([0.955, 0.951]),
        ..entry("cpu", "sysbench, prime numbers, one thread", "events/s", Kind::Primes, When::Quick)
    },
    Entry {
        published: Some([1.012, 0.436]),
        ..entry(
            "sqlite-insert",
            "SQLite, inserts that are a transaction each, flushed to disk",
            "inserts/s",
            Kind::Sqlite,
            When::Usual,
        )
    },
    Entry {
        start_ms: 1500,
        ..entry(
            "postgres-connect",
            "PostgreSQL, a new connection for each transaction (pgbench -S -C)",
            "transactions/s",
            Kind::Postgres { writes: false, reconnect: true },
            When::Usual,
        )
    },
    redis("redis-set", "Redis SET, 10 clients", "set", 1, When::Usual, None),
    Entry {
        start_ms: 1500,
        ..entry(
            "postgres-write",
            "PostgreSQL, updates of single rows (pgbench -N), not flushed, 4 clients",
            "transactions/s",
            Kind::Postgres { writes: true, reconnect: false },
            When::Named,
        )
    },
    Entry {
        start_ms: 2500,
        ..entry(
            "mariadb-read",
            "MariaDB, single rows by key (sysbench oltp_point_select), 4 clients",
            "transactions/s",
            Kind::MariaDb { writes: false },
            When::Named,
        )
    },
    Entry {
        start_ms: 2500,
        ..entry(
            "mariadb-write",
            "MariaDB, updates of single rows, not flushed, 4 clients",
            "transactions/s",
            Kind::MariaDb { writes: true },
            When::Named,
        )
    },
    redis("redis-lpush", "Redis LPUSH, 10 clients", "lpush", 1, When::Named, None),
    redis("redis-lpop", "Redis LPOP, 10 clients", "lpop", 1, When::Named, None),
    redis("redis-sadd", "Redis SADD, 10 clients", "sadd", 1, When::Named, None),
    redis(
        "redis-get-pipelined",
        "Redis GET, 16 in flight",
        "get",
        16,
        When::Named,
        Some([1.018, 0.038]),
    ),
    redis(
        "redis-set-pipelined",
        "Redis SET, 16 in flight",
        "set",
        16,
        When::Named,
        Some([1.018, 0.051]),
    ),
    redis(
        "redis-lpush-pipelined",
        "Redis LPUSH, 16 in flight",
        "lpush",
        16,
        When::Named,
        Some([0.993, 0.058]),
    ),
    redis(
        "redis-lpop-pipelined",
        "Redis LPOP, 16 in flight",
        "lpop",
        16,
        When::Named,
        Some([1.0, 0.037]),
    ),
    redis(
        "redis-sadd-pipelined",
        "Redis SADD, 16 in flight",
        "sadd",
        16,
        When::Named,
        Some([1.028, 0.046]),
    ),
    exchange(
        "tcp-rr",
        "TCP_RR: one byte to a server in the arm and back, loopback; median time",
        Exchange::Tcp,
        Some([0.999, 0.666]),
    ),
    exchange(
        "tcp-crr",
        "TCP_CRR: a connection for each byte there and back, loopback; median time",
        Exchange::TcpConnect,
        Some([0.989, 0.476]),
    ),
    exchange(
        "udp-rr",
        "UDP_RR: one datagram to a server in the arm and one back, loopback; median time",
        Exchange::Udp,
        Some([0.998, 0.748]),
    ),
    exchange(
        "tcp-stream",
        "TCP_STREAM: as many bytes as a server in the arm takes over one connection, loopback",
        Exchange::Stream,
        None,
    ),
    own("memory-copy", "copies of 64 MiB", WorkKind::MemoryCopy, 500, Some([0.972, 0.992])),
    own("memory-scale", "a = s b, 64 MiB each", WorkKind::MemoryScale, 500, Some([0.972, 0.992])),
    own("memory-add", "a = b + c, 64 MiB each", WorkKind::MemoryAdd, 500, Some([0.972, 0.992])),
    own(
        "memory-triad",
        "a = b + s c, 64 MiB each",
        WorkKind::MemoryTriad,
        500,
        Some([0.972, 0.992]),
    ),
    own(
        "tmpfs-random",
        "4 KiB read and written at random in memory",
        WorkKind::TmpfsRandom,
        1000,
        Some([0.958, 0.646]),
    ),
    own(
        "file-write-256k",
        "256 KiB in order, page cache, flushed at the end",
        WorkKind::Write(BUFFERED),
        2000,
        Some([0.933, 0.872]),
    ),
    own(
        "file-read-256k",
        "256 KiB in order, page cache smaller than the file",
        WorkKind::Read(BUFFERED),
        4000,
        Some([1.0, 0.967]),
    ),
    own(
        "file-write-2m",
        "2 MiB in order, page cache, flushed at the end",
        WorkKind::Write(BUFFERED_LARGE),
        2000,
        Some([0.995, 0.928]),
    ),
    own(
        "file-read-2m",
        "2 MiB in order, page cache smaller than the file",
        WorkKind::Read(BUFFERED_LARGE),
        4000,
        Some([1.0, 0.958]),
    ),
    own(
        "file-write-256k-direct",
        "256 KiB in order, past the page cache",
        WorkKind::Write(DIRECT),
        2000,
        None,
    ),
    own(
        "file-read-256k-direct",
        "256 KiB in order, past the page cache",
        WorkKind::Read(DIRECT),
        4000,
        None,
    ),
    own(
        "file-write-2m-direct",
        "2 MiB in order, past the page cache",
        WorkKind::Write(DIRECT_LARGE),
        2000,
        None,
    ),
    own(
        "file-read-2m-direct",
        "2 MiB in order, past the page cache",
        WorkKind::Read(DIRECT_LARGE),
        4000,
        None,
    ),
    Entry {
        trial_ms: 3000,
        published: Some([0.953, 0.864]),
        ..entry(
            "video-encode",
            "SVT-AV1, one thread; published: decoding by dav1d",
            "frames/s",
            Kind::Encode,
            When::Named,
        )
    },
];

impl Kind {
    /// Whether a server runs in the arm, and its clients outside.
    pub(super) fn is_served(self) -> bool {
        matches!(self, Self::Redis { .. } | Self::Postgres { .. } | Self::MariaDb { .. })
    }

    /// The databases whose loads it is like.
    fn stands_for(self) -> Option<StandsFor> {
        let of = |engine: &str, connects| StandsFor { engine: engine.to_owned(), connects };
        match self {
            Self::Redis { .. } => Some(of("redis", false)),
            Self::Postgres { reconnect, .. } => Some(of("postgres", reconnect)),
            Self::MariaDb { .. } => Some(of("mysql", false)),
            _ => None,
        }
    }

    /// Whether the page cache must be smaller than the file.
    pub(super) fn needs_memory_limit(self) -> bool {
        matches!(self, Self::Own(WorkKind::Write(_) | WorkKind::Read(_)))
    }
}

/// All work, with what it is, and that of the command line before it.
pub(super) fn all(command: Option<&str>) -> Vec<(Workload, Kind)> {
    // A server and its clients on CPUs of their own: then what the arm takes shows whole, and clients never
    // wait for the CPU of the server.
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let apart = if cpus > 1 { Placement::TwoCores } else { Placement::OneCpu };
    let known = WORKLOADS.iter().map(|entry| {
        let is_stream = entry.kind == Kind::Exchange(Exchange::Stream);
        let is_apart = entry.kind.is_served() || is_stream;
        let placement = if is_apart { apart } else { Placement::OneCpu };
        let published = entry.published.into_iter().flat_map(|[runc, ptrace]| {
            [("runc", runc), ("gvisor-ptrace", ptrace)].map(|(arm, factor)| Published {
                arm: arm.to_owned(),
                factor,
                source: SOURCE.to_owned(),
            })
        });
        let workload = Workload {
            trial: Duration::from_millis(entry.trial_ms),
            start: Duration::from_millis(entry.start_ms),
            placements: vec![placement],
            is_usual: entry.when != When::Named,
            is_quick: entry.when == When::Quick,
            explains: entry.kind == Kind::Own(WorkKind::Calls),
            published: published.collect(),
            stands_for: entry.kind.stands_for(),
            ..Workload::new(entry.id, entry.summary, entry.unit, entry.better)
        };
        (workload, entry.kind)
    });
    let own = command.map(|command| {
        let summary = format!("the time of: {command}");
        let workload = Workload {
            is_usual: true,
            is_quick: true,
            ..Workload::new("command", &summary, "s", Better::Lower)
        };
        (workload, Kind::Command)
    });
    own.into_iter().chain(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_what_is_quick_is_usual() {
        let all = all(Some("true"));
        let mut ids: Vec<&str> = all.iter().map(|(work, _)| work.id.as_str()).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(all.iter().all(|(work, _)| work.is_usual || !work.is_quick));
        assert_eq!(all[0].0.id, "command");
    }
}
