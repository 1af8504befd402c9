//! The control groups of a database, and their limits.

use crate::pressure::GroupStalls;
use crate::{Bytes, Reading, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a database sits in the control groups, and the limits that matter to pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cgroup {
    /// Path of each v1 controller, and of `unified`, as `/proc/PID/cgroup` gives it.
    pub paths: BTreeMap<String, String>,
    /// Huge-page limits from its own group up to the root, nearest first.
    pub hugetlb: Reading<Vec<HugetlbLimit>>,
    /// The lowest memory limit up the hierarchy; absent when there is none.
    pub memory_limit_bytes: Reading<Bytes>,
    /// The groups that limit its CPU time, nearest first; none when no group does.
    pub cpu: Reading<Vec<CpuLimit>>,
    /// The groups that limit its memory, nearest first; none when no group does. One whose limit could not
    /// be read is among them.
    pub memory: Reading<Vec<MemoryGroup>>,
    /// What its groups limit of block devices, nearest first; none when no group does.
    pub io: Reading<Vec<IoLimit>>,
    /// How long tasks of its own group were held up, or of the nearest above it that counts (version 2
    /// alone); absent where that would be the machine. Not known of older captures.
    #[serde(default = "Reading::<GroupStalls>::not_captured")]
    pub pressure: Reading<GroupStalls>,
    /// How many processes of its own group the kernel killed so far, since no memory could be freed. Not
    /// known of older captures.
    #[serde(default = "Reading::<u64>::not_captured")]
    pub oom_kills: Reading<u64>,
}

impl Cgroup {
    /// A database in these groups, of whose limits nothing is known.
    pub fn unknown(paths: BTreeMap<String, String>, why: &str) -> Self {
        Self {
            paths,
            hugetlb: Reading::absent(why),
            memory_limit_bytes: Reading::absent(why),
            cpu: Reading::absent(why),
            memory: Reading::absent(why),
            io: Reading::absent(why),
            pressure: Reading::absent(why),
            oom_kills: Reading::absent(why),
        }
    }

    /// The systemd unit that these groups are of: the innermost service or scope, unless it is a container's.
    pub fn unit(&self) -> Option<String> {
        let path = self.paths.get("name=systemd").or_else(|| self.paths.get("unified"));
        let path = path.or_else(|| self.paths.values().next())?;
        let is_unit = |part: &&str| matches!(part.rsplit_once('.'), Some((_, "service" | "scope")));
        let unit = path.split('/').rfind(is_unit)?;
        // What a runtime makes for a container is named after the container.
        let is_containers =
            ["docker-", "cri-", "crio-", "libpod-"].iter().any(|of| unit.starts_with(of));
        (!is_containers).then(|| unit.to_owned())
    }

    /// The group that its memory counts in; none for the root, which it shares with all.
    pub fn memory_path(&self) -> Option<&str> {
        let own = self.paths.get("memory").or_else(|| self.paths.get("unified"))?;
        (own != "/").then_some(own)
    }

    /// The group with the lowest memory limit, of all that a database is in.
    pub fn tightest_memory(&self) -> Option<&MemoryGroup> {
        let groups = self.memory.value()?.iter();
        let limited = groups.filter_map(|group| Some((group, group.limit()?)));
        limited.min_by_key(|(_, limit)| *limit).map(|(group, _)| group)
    }
}

/// How many CPUs a group should have that may use so many, where its limit took this share of the time
/// that its threads were active: what they used and what they were held back for, with room, since demand
/// comes in bursts within a period.
pub fn wanted_cpus(limit: f64, lost: f64) -> f64 {
    // A share of one would want without end; half a CPU is as fine as people set limits.
    let wanted = limit / (1.0 - lost.clamp(0.0, MOST_LOST)) * ROOM;
    (wanted * 2.0).ceil() / 2.0
}

/// Room above what was wanted on average.
const ROOM: f64 = 1.5;

/// Beyond this share a limit says no more of what is wanted.
const MOST_LOST: f64 = 0.95;

/// A limit of a group on one block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IoLimit {
    /// The group's path below the mount.
    pub cgroup: String,
    /// The device, `major:minor`.
    pub device: String,
    /// What of it.
    pub what: Limited,
    /// How many requests or bytes each second.
    pub per_s: u64,
}

/// What a group may limit of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limited {
    /// Requests that read.
    Reads,
    /// Requests that write, or empty the device's cache.
    Writes,
    /// Bytes read.
    ReadBytes,
    /// Bytes written.
    WrittenBytes,
}

/// A group that limits memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryGroup {
    /// The group's path below the mount.
    pub cgroup: String,
    /// Beyond this the kernel reclaims, and kills when that frees nothing.
    pub max_bytes: Reading<Bytes>,
    /// Beyond this it slows down whoever allocates, and reclaims.
    pub high_bytes: Reading<Bytes>,
    /// What is charged to it now.
    pub usage_bytes: Reading<Bytes>,
    /// The part of it that is page cache, shared memory included, and in v2 the kernel's caches of names
    /// and inodes, which can be freed too.
    pub file_bytes: Reading<Bytes>,
    /// Shared memory.
    pub shmem_bytes: Reading<Bytes>,
    /// How often it came to its limit so far.
    pub at_limit: Reading<u64>,
}

impl MemoryGroup {
    /// A group of which nothing is known but its path below the mount.
    pub fn unknown(cgroup: &str, why: &str) -> Self {
        Self {
            cgroup: cgroup.to_owned(),
            max_bytes: Reading::absent(why),
            high_bytes: Reading::absent(why),
            usage_bytes: Reading::absent(why),
            file_bytes: Reading::absent(why),
            shmem_bytes: Reading::absent(why),
            at_limit: Reading::absent(why),
        }
    }

    /// The lower one of its limits.
    pub fn limit(&self) -> Option<Bytes> {
        self.max_bytes.value().into_iter().chain(self.high_bytes.value()).min().copied()
    }

    /// What reclaim cannot free without swap: all but the page cache of files.
    pub fn unreclaimable(&self) -> Option<Bytes> {
        let cache = self.file_bytes.value()?.0.saturating_sub(self.shmem_bytes.value()?.0);
        Some(Bytes(self.usage_bytes.value()?.0.saturating_sub(cache)))
    }
}

/// A group that limits CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuLimit {
    /// The group's path below the mount.
    pub cgroup: String,
    /// How many CPUs it may use: quota over period.
    pub cpus: f64,
    /// The period in which the quota is to last.
    pub period_s: Seconds,
    /// Periods in which it ran, so far.
    pub periods: Reading<u64>,
    /// Periods in which it used up its quota, so far.
    pub throttled_periods: Reading<u64>,
}

/// Limits of one group for one size of huge page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HugetlbLimit {
    /// The group's path below the mount.
    pub cgroup: String,
    /// The page size.
    pub size_bytes: Bytes,
    /// Limit on faulted pages; going over it raises SIGBUS. Absent means unlimited.
    pub max_bytes: Reading<Bytes>,
    /// Limit on reserved pages; going over it fails `mmap`. Absent means unlimited.
    pub rsvd_max_bytes: Reading<Bytes>,
    /// What is faulted in now.
    pub usage_bytes: Reading<Bytes>,
}
