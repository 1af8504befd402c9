//! The workloads: what a database asks of a disk.

use super::spec::{Beside, Work};
use crate::platform::{Better, Placement, Workload};
use std::time::Duration;
use untax_core::Bytes;

/// A page of PostgreSQL, and one of InnoDB.
const PAGE_8K: u32 = 8 << 10;
const PAGE_16K: u32 = 16 << 10;
/// What several commits write to a log at once.
const RECORD_32K: u32 = 32 << 10;

/// A record of etcd's log, as its documentation checks a disk: `fio --rw=write --fdatasync=1 --bs=2300`.
const RECORD_ETCD: u32 = 2300;

/// A burst: some seconds of a busy database's changed pages.
const BURST: Bytes = Bytes(32 << 20);

/// What is timed beside commits: the same as `log-8k`.
pub(crate) const RECORDS: Work = Work::Log { record: PAGE_8K, beside: Beside::Nothing };

/// Processes that flood the journal at once.
const FLOODERS: u32 = 4;

/// What one workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A child's work, perhaps beside a neighbour, perhaps limited.
    Child {
        work: Work,
        /// What the value is.
        shows: Shows,
        neighbour: Neighbour,
        is_limited: bool,
    },
    /// Commits of a PostgreSQL, predicted and measured.
    Commits,
    /// The same work by this program and by another: the value is the ratio of both rates.
    Compare { work: Work, with: Instrument },
}

/// What a workload's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The median of the log's records, us.
    LogMedian,
    /// Their 99th percentile, us.
    LogTail,
    /// The median of reads, us.
    ReadMedian,
    /// Reads a second.
    ReadRate,
}

/// A neighbour on the same filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbour {
    /// None.
    Nobody,
    /// One that floods the journal.
    Flood,
    /// The same, limited to so many writes a second as `--limit` says.
    LimitedFlood,
}

impl Neighbour {
    /// Its work.
    pub(crate) const FLOOD: Work = Work::Flood { threads: FLOODERS };
}

/// Another program that measures the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instrument {
    /// fio.
    Fio,
    /// PostgreSQL's `pg_test_fsync`.
    PgTestFsync,
}

/// A workload and what it does.
pub(crate) struct Entry {
    pub(crate) workload: Workload,
    pub(crate) deed: Deed,
}

/// All workloads, the most telling first.
pub(crate) fn all(depth: u32, limit: u64) -> Vec<Entry> {
    [logs(), reads(depth), beside(depth), neighbours(limit), comparisons(depth)]
        .into_iter()
        .flatten()
        .collect()
}

fn log(record: u32) -> Work {
    Work::Log { record, beside: Beside::Nothing }
}

fn child(work: Work, shows: Shows) -> Deed {
    Deed::Child { work, shows, neighbour: Neighbour::Nobody, is_limited: false }
}

/// A workload whose value is a time.
fn time(id: &str, summary: &str, deed: Deed) -> Entry {
    Entry { workload: Workload::new(id, summary, "us", Better::Lower), deed }
}

/// A workload whose value is a rate.
fn rate(id: &str, summary: &str, unit: &str, deed: Deed) -> Entry {
    Entry { workload: Workload::new(id, summary, unit, Better::Higher), deed }
}

impl Entry {
    fn usual(mut self) -> Self {
        self.workload.is_usual = true;
        self
    }

    fn quick(mut self) -> Self {
        self.workload.is_quick = true;
        self.usual()
    }

    fn for_seconds(mut self, seconds: u64) -> Self {
        self.workload.trial = Duration::from_secs(seconds);
        self
    }

    /// The timed work on one core, the work beside it on another.
    fn on_two_cores(mut self) -> Self {
        self.workload.placements = vec![Placement::TwoCores];
        self
    }

    fn explaining(mut self) -> Self {
        self.workload.explains = true;
        self
    }
}

fn logs() -> Vec<Entry> {
    let summary = |what: &str| format!("p50 of {what}, each flushed with fdatasync");
    let over = "8 KiB records over a log that was written before (PostgreSQL)";
    vec![
        time("log-8k", &summary(over), child(log(PAGE_8K), Shows::LogMedian)).quick(),
        rate(
            "postgres",
            "commits of one client of a PostgreSQL, predicted from log-8k and measured",
            "commits/s",
            Deed::Commits,
        )
        .for_seconds(3)
        .usual(),
        time("log-32k", &summary("32 KiB records"), child(log(RECORD_32K), Shows::LogMedian)),
        time(
            "append-2300",
            &summary("2,300 B records appended to a file that grows (etcd)"),
            child(Work::Append { record: RECORD_ETCD }, Shows::LogMedian),
        )
        .usual(),
    ]
}

fn reads(depth: u32) -> Vec<Entry> {
    let one = |block| child(Work::Read { block, depth: 1 }, Shows::ReadMedian);
    let deep = |block| child(Work::Read { block, depth }, Shows::ReadRate);
    let many = |size: &str| format!("random direct reads of {size}, {depth} at once");
    vec![
        time("read-8k", "p50 of random direct reads of 8 KiB, one at a time", one(PAGE_8K)).quick(),
        rate("read-8k-deep", &many("8 KiB"), "reads/s", deep(PAGE_8K)).usual(),
        time("read-16k", "p50 of random direct reads of 16 KiB, one at a time", one(PAGE_16K)),
        rate("read-16k-deep", &many("16 KiB"), "reads/s", deep(PAGE_16K)),
    ]
}

fn beside(depth: u32) -> Vec<Entry> {
    let bursts = Work::Log { record: PAGE_8K, beside: Beside::Checkpoints { burst: BURST } };
    let reads = Work::Log { record: PAGE_8K, beside: Beside::Reads { block: PAGE_8K, depth } };
    vec![
        time(
            "checkpoint",
            "p99 of 8 KiB log records beside bursts of 32 MiB that are flushed at once",
            child(bursts, Shows::LogTail),
        )
        .for_seconds(2)
        .on_two_cores()
        .quick(),
        rate(
            "mixed",
            &format!(
                "random direct reads of 8 KiB, {depth} at once, beside a log of 8 KiB records"
            ),
            "reads/s",
            child(reads, Shows::ReadRate),
        )
        .on_two_cores(),
    ]
}

fn neighbours(limit: u64) -> Vec<Entry> {
    let beside = |neighbour| Deed::Child {
        work: log(PAGE_8K),
        shows: Shows::LogMedian,
        neighbour,
        is_limited: false,
    };
    let limited = Deed::Child {
        work: log(PAGE_8K),
        shows: Shows::LogMedian,
        neighbour: Neighbour::Nobody,
        is_limited: true,
    };
    let flood = "p50 of 8 KiB log records beside a neighbour that floods the journal of the same filesystem";
    vec![
        time("flood", flood, beside(Neighbour::Flood)).on_two_cores().quick(),
        time(
            "flood-limited",
            &format!("{flood}, limited to {limit} writes/s (io.max or blkio)"),
            beside(Neighbour::LimitedFlood),
        )
        .on_two_cores(),
        time(
            "log-limited",
            &format!("p50 of 8 KiB log records, limited to {limit} writes/s (io.max or blkio)"),
            limited,
        ),
    ]
}

fn comparisons(depth: u32) -> Vec<Entry> {
    let compare = |id: &str, what: &str, work, with| {
        let summary = format!("{what} by this program over the same by another, close in time");
        rate(id, &summary, "ratio", Deed::Compare { work, with }).explaining()
    };
    let read = |depth| Work::Read { block: PAGE_8K, depth };
    vec![
        compare("fio-log", "log-8k: its rate", log(PAGE_8K), Instrument::Fio).for_seconds(2),
        compare("fio-read", "read-8k: its rate", read(1), Instrument::Fio).for_seconds(2),
        compare("fio-read-deep", "read-8k-deep", read(depth), Instrument::Fio).for_seconds(2),
        compare("pg-test-fsync", "log-8k: its rate", log(PAGE_8K), Instrument::PgTestFsync)
            .for_seconds(20),
    ]
}
