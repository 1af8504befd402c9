//! What the disks did for the databases and for others during a window.

use crate::{Bytes, Reading, Seconds};
use serde::{Deserialize, Serialize};

/// Input and output of a window: requests, devices, filesystems, dirty pages, and who writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Io {
    /// How long the disks were watched.
    pub window_s: Seconds,
    /// Requests by device, database, role and direction; needs tracing.
    pub flows: Reading<Vec<Flow>>,
    /// Devices that hold a database's files or had requests.
    pub devices: Vec<Device>,
    /// Where each database keeps what.
    pub places: Vec<Place>,
    /// Pages that wait to be written.
    pub dirty: Reading<Dirty>,
    /// Who wrote most, the most first.
    pub writers: Reading<Vec<Writer>>,
    /// Filesystem journals.
    pub journals: Vec<Journal>,
}

impl Io {
    /// Disks of which nothing was seen in a window of this length.
    pub fn unseen(window_s: Seconds, why: &str) -> Self {
        Self {
            window_s,
            flows: Reading::absent(why),
            devices: Vec::new(),
            places: Vec::new(),
            dirty: Reading::absent(why),
            writers: Reading::absent(why),
            journals: Vec::new(),
        }
    }
}

/// What a request is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The log that makes transactions durable.
    Log,
    /// Tables and indexes.
    Data,
    /// What queries spill.
    Temp,
    /// Anything else, as what other programs write.
    Other,
    /// The filesystem's own structures, its journal among them: written for all who change files.
    Filesystem,
}

impl Role {
    /// All of them, in the order in which the probe numbers them.
    pub const ALL: [Self; 5] = [Self::Log, Self::Data, Self::Temp, Self::Other, Self::Filesystem];

    /// As output spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Data => "data",
            Self::Temp => "temp",
            Self::Other => "other",
            Self::Filesystem => "filesystem",
        }
    }
}

/// What a request does.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Empties the device's own cache.
    Flush,
    /// Tells the device what is not needed any more.
    Discard,
}

impl Direction {
    /// All of them, in the order in which the probe numbers them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];

    /// As output spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }
}

/// Requests of one kind that completed during the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Flow {
    /// The device, such as `vda`.
    pub device: String,
    /// The database whose files they were for, or whose process made them; `None` for others.
    pub database: Option<String>,
    /// What they were for.
    pub role: Role,
    /// What they did.
    pub direction: Direction,
    /// How many.
    pub requests: u64,
    /// How much they moved.
    pub bytes: Bytes,
    /// Share (0..1) of them that began where an earlier one had ended.
    pub sequential: f64,
    /// From issue to completion: what the device, and all behind it, took.
    pub latency: Spread,
    /// Mean time from the making of a request to its issue: in the scheduler's queue.
    pub queued_s: Seconds,
    /// How many took how long; a bucket is a quarter of a power of two wide.
    pub latencies: Vec<Bucket>,
    /// How many were how large, powers of two.
    pub sizes: Vec<Bucket>,
    /// Bytes of the busiest quarter of a second over their mean: 1 is steady.
    pub burst: f64,
    /// Each whole second of the window; none where seconds were not told apart: in older runs, and in windows of
    /// more than ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Vec<Second>>,
}

/// What completed in one second.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Second {
    /// How much was moved.
    pub bytes: Bytes,
    /// By how many requests.
    pub requests: u64,
}

/// A distribution of times in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Spread {
    /// The mean, exact.
    pub mean_s: Seconds,
    /// Half took less; like the next two, known within a bucket of the histogram.
    pub p50_s: Seconds,
    /// Nine of ten took less.
    pub p90_s: Seconds,
    /// 99 of 100 took less.
    pub p99_s: Seconds,
    /// The longest, exact.
    pub max_s: Seconds,
}

/// A bar of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bucket {
    /// Where it begins: seconds, or bytes.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// How many are in it.
    pub count: u64,
}

/// The value below which `share` of all counted lie, evenly spread within a bucket; zero for none.
pub fn percentile(buckets: &[Bucket], share: f64) -> f64 {
    let all: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    let mut rest = all as f64 * share;
    for bucket in buckets.iter().filter(|bucket| bucket.count > 0) {
        let count = bucket.count as f64;
        if rest <= count {
            return bucket.from + (bucket.to - bucket.from) * rest / count;
        }
        rest -= count;
    }
    buckets.last().map_or(0.0, |bucket| bucket.to)
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Device {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// What is behind it.
    pub behind: Behind,
    /// Whether it has turning disks, as far as it says.
    pub rotational: Reading<bool>,
    /// Its I/O scheduler.
    pub scheduler: Reading<String>,
    /// Its model, where it has one.
    pub model: Reading<String>,
    /// What is mounted from it or its partitions.
    pub mounts: Vec<Mount>,
    /// What the kernel counted of it, others' requests included.
    pub counted: Reading<Counted>,
}

impl Device {
    /// A local device of which nothing else is known.
    pub fn unknown(name: &str, number: &str, why: &str) -> Self {
        Self {
            name: name.to_owned(),
            number: number.to_owned(),
            behind: Behind::Local,
            rotational: Reading::absent(why),
            scheduler: Reading::absent(why),
            model: Reading::absent(why),
            mounts: Vec::new(),
            counted: Reading::absent(why),
        }
    }
}

/// What is behind a block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Behind {
    /// A controller of this machine, or one that a hypervisor shows.
    Local,
    /// A file.
    Loop,
    /// Other devices: device mapper or RAID.
    Mapped,
    /// The same, where workers of the kernel write, from memory of their own: encrypted devices, RAID with
    /// parity.
    Copied,
    /// A network; the text says which.
    Network(String),
    /// Memory.
    Memory,
}

/// A mounted filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub point: String,
    /// `ext4`, `xfs`, …
    pub filesystem: String,
}

/// Differences of `/proc/diskstats` over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counted {
    /// Requests that read.
    pub reads: u64,
    /// Requests that wrote.
    pub writes: u64,
    /// What was read.
    pub read_bytes: Bytes,
    /// What was written.
    pub written_bytes: Bytes,
    /// Sum of the times that reads took, their queue included.
    pub reading_s: Seconds,
    /// The same of writes.
    pub writing_s: Seconds,
    /// Share (0..1) of the window in which it had a request.
    pub busy: f64,
}

/// A directory of a database and the filesystem it is on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// The database's id.
    pub database: String,
    /// What is kept there.
    pub role: Role,
    /// The directory, as the database sees it.
    pub directory: String,
    /// Its filesystem.
    pub filesystem: Reading<Filesystem>,
}

/// A filesystem as a database sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Filesystem {
    /// `major:minor`: the same number is the same filesystem.
    pub number: String,
    /// `ext4`, `xfs`, `nfs4`, …
    pub kind: String,
    /// Where it is mounted, as the database sees it.
    pub point: String,
    /// The device that it is on, when it is on one.
    pub device: Option<String>,
    /// The network storage that it is on; `None` when none is seen.
    pub network: Option<String>,
}

/// Pages that wait to be written, at their most during the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Dirty {
    /// Changed and not being written yet.
    pub dirty_bytes: Bytes,
    /// Being written.
    pub writeback_bytes: Bytes,
    /// At this much, whoever dirties more has to wait.
    pub threshold_bytes: Bytes,
    /// At this much, the kernel begins to write.
    pub background_bytes: Bytes,
}

/// A process that wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Writer {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its control group (the blkio controller's, or the unified one).
    pub cgroup: String,
    /// The database that it belongs to.
    pub database: Option<String>,
    /// What it caused to be written during the window.
    pub written_bytes: Bytes,
    /// What holds its group's I/O or CPU back, in words; empty when nothing does.
    pub limits: Vec<String>,
}

/// A filesystem's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Journal {
    /// The device's name, such as `vda`.
    pub device: String,
    /// Transactions that it wrote during the window.
    pub transactions: u64,
    /// Mean time to write one to the journal, since it was mounted.
    pub commit_s: Reading<Seconds>,
}

impl Io {
    /// The flows of one database; none when they were not traced.
    pub fn flows_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a Flow> {
        let all = self.flows.value().into_iter().flatten();
        all.filter(move |flow| flow.database.as_deref() == Some(database))
    }

    /// The places of one database.
    pub fn places_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a Place> {
        self.places.iter().filter(move |place| place.database == database)
    }

    /// A device by name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_within_their_bucket() {
        let bucket = |from: f64, count| Bucket { from, to: from * 2.0, count };
        let buckets = [bucket(1.0, 50), bucket(2.0, 0), bucket(4.0, 50)];
        assert!((percentile(&buckets, 0.5) - 2.0).abs() < 1e-12);
        assert!((percentile(&buckets, 0.75) - 6.0).abs() < 1e-12);
        assert!((percentile(&buckets, 1.0) - 8.0).abs() < 1e-12);
        assert!(percentile(&[], 0.5).abs() < 1e-12);
    }
}
