//! What a child is asked to do, and what it answers.

use super::device::{Device, Moved};
use super::latency::Latencies;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use untax_core::Bytes;

/// What a child is started for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Where its files are.
    pub(crate) directory: PathBuf,
    pub(crate) work: Work,
    /// How long it measures.
    pub(crate) length: Duration,
    /// The size of the data file.
    pub(crate) data: Bytes,
    /// What offsets are drawn from.
    pub(crate) seed: u64,
    /// What the directory's bytes pass.
    pub(crate) devices: Vec<Device>,
    /// CPUs of the work that is timed, and of the work beside it; none: all.
    pub(crate) cpus: [Vec<u32>; 2],
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Writes all files in full.
    Fill,
    /// Writes records of a log that was written before, and flushes each, as PostgreSQL does with a recycled
    /// segment.
    Log {
        /// Bytes of a record.
        record: u32,
        /// What goes on beside it.
        beside: Beside,
    },
    /// Appends records to a file that grows, and flushes each, as etcd's check of a disk does.
    Append {
        /// Bytes of a record.
        record: u32,
    },
    /// Reads blocks at random past the page cache.
    Read {
        /// Bytes of a block.
        block: u32,
        /// How many are read at once.
        depth: u32,
    },
    /// Makes, flushes, renames and removes small files until it is killed: each step goes through the journal.
    Flood {
        /// How many do so at once.
        threads: u32,
    },
}

/// What goes on beside a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Beside {
    /// Nothing.
    Nothing,
    /// Bursts of pages that are written through the page cache and flushed at once, as a checkpoint does.
    Checkpoints {
        /// Bytes of a burst.
        burst: Bytes,
    },
    /// Random reads.
    Reads {
        /// Bytes of a block.
        block: u32,
        /// How many are read at once.
        depth: u32,
    },
}

/// What a child measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// How long it took.
    pub(crate) took_s: f64,
    /// Records of the log.
    pub(crate) log: Option<Latencies>,
    /// Blocks that were read.
    pub(crate) reads: Option<Latencies>,
    /// Bytes that were to be read and written, bursts included.
    pub(crate) asked: Moved,
    /// What each device moved meanwhile; none where it does not tell.
    pub(crate) devices: Vec<Option<Moved>>,
    /// What the kernel counted for this process as read from storage (`read_bytes` of `/proc/self/io`).
    pub(crate) own_read: Option<Bytes>,
    /// Bursts that were flushed meanwhile.
    pub(crate) bursts: Vec<Burst>,
}

/// One burst.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Burst {
    /// How long its pages took into the page cache.
    pub(crate) write_s: f64,
    /// How long they took from there to the disk.
    pub(crate) flush_s: f64,
}
