//! One running database as types. `untax_engines` finds and reads them.

mod groups;
mod places;
mod process_role;
mod traits;

use crate::network::DatabaseNetwork;
use crate::placement::Placement;
use crate::{Bytes, Interval, Reading, Seconds};
pub use groups::{Cgroup, CpuLimit, HugetlbLimit, IoLimit, Limited, MemoryGroup, wanted_cpus};
pub use places::DataPlace;
pub use process_role::ProcessRole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use traits::{PoolUse, ThpWish, Traits};

/// One running instance of an engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Database {
    /// `engine:pid`, such as `postgres:4012`.
    pub id: String,
    /// Its stable name, which outlives restarts: `ENGINE@PORT` (else its data directory) on a host,
    /// `NAMESPACE/POD/CONTAINER` in a cluster; left out in runs of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `postgres`, `mysql`, `redis`, `mongodb`, `oracle` or `generic`.
    pub engine: String,
    /// What is known of that engine; nothing in runs of older versions.
    #[serde(default)]
    pub traits: Traits,
    /// The product, where the engine has several: `MariaDB`, `Valkey`, …
    pub product: String,
    /// The server's version.
    pub version: Reading<String>,
    /// Its main process.
    pub pid: u32,
    /// When the main process was started, clock ticks since boot: tells a reused pid apart.
    pub started_ticks: Reading<u64>,
    /// The program, as the kernel links it.
    pub executable: Reading<String>,
    /// Whether the program's file was replaced or removed since the start.
    pub executable_deleted: Reading<bool>,
    /// The OS user that runs it.
    pub uid: Reading<u32>,
    /// The main process's pid inside its own pid namespace, when that is another one.
    pub namespace_pid: Option<u32>,
    /// Whether a client is a `process` or a `thread`, or the engine is a single `loop`.
    pub model: Model,
    /// Its processes.
    pub pids: Vec<u32>,
    /// What those of them are for that say so in their titles; nothing in runs of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<u32, ProcessRole>,
    /// Number of threads of all processes.
    pub threads: Reading<u32>,
    /// Client connections.
    pub connections: Reading<u32>,
    /// The container it runs in.
    pub container: Option<Container>,
    /// The Kubernetes pod it runs in.
    pub pod: Option<Pod>,
    /// Its control groups.
    pub cgroup: Reading<Cgroup>,
    /// Its data directory.
    pub data_directory: Reading<String>,
    /// Other directories of its; none in runs of older versions.
    #[serde(default)]
    pub places: Vec<DataPlace>,
    /// Its memory.
    pub memory: DatabaseMemory,
    /// What it asks of huge pages.
    pub huge_pages: Reading<HugePageUse>,
    /// The settings that matter to the rules.
    pub settings: Reading<Settings>,
    /// What it has counted so far.
    pub counters: Counters,
    /// Its network.
    pub network: Reading<DatabaseNetwork>,
    /// The CPUs that its main process may use, such as `0-15,32-47`.
    #[serde(default = "Reading::<String>::not_captured")]
    pub allowed_cpus: Reading<String>,
    /// Where it is, on a machine with several NUMA nodes.
    pub placement: Reading<Placement>,
    /// A digest of `/etc/machine-id` as it sees it; absent when it sees the host's own files.
    pub machine_id: Reading<String>,
}

impl Database {
    /// A database of which nothing is known but its engine and main process, for this reason. Its
    /// product is called like the engine until the server says what it is.
    pub fn unknown(engine: &str, pid: u32, why: &str) -> Self {
        Self {
            id: format!("{engine}:{pid}"),
            name: String::new(),
            engine: engine.to_owned(),
            traits: Traits::default(),
            product: engine.to_owned(),
            version: Reading::absent(why),
            pid,
            started_ticks: Reading::absent(why),
            executable: Reading::absent(why),
            executable_deleted: Reading::absent(why),
            uid: Reading::absent(why),
            namespace_pid: None,
            model: Model::Unknown,
            pids: vec![pid],
            roles: BTreeMap::new(),
            threads: Reading::absent(why),
            connections: Reading::absent(why),
            container: None,
            pod: None,
            cgroup: Reading::absent(why),
            data_directory: Reading::absent(why),
            places: Vec::new(),
            memory: DatabaseMemory::unknown(why),
            huge_pages: Reading::absent(why),
            settings: Reading::absent(why),
            counters: Counters::unknown(why),
            network: Reading::absent(why),
            allowed_cpus: Reading::absent(why),
            placement: Reading::absent(why),
            machine_id: Reading::absent(why),
        }
    }

    /// Whether `other` is the same start of the same server.
    pub fn is_same_instance(&self, other: &Self) -> bool {
        self.id == other.id && self.started_ticks == other.started_ticks
    }

    /// Whether its version is this one or a later one; `None` where no version is known.
    pub fn is_at_least(&self, major: u32, minor: u32) -> Option<bool> {
        let mut numbers = self.version.value()?.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse::<u32>().ok();
        let known = (number()?, number().unwrap_or(0));
        Some(known >= (major, minor))
    }

    /// What its version wants of transparent huge pages; absent where its engine wants nothing.
    pub fn thp_wish(&self) -> Reading<&ThpWish> {
        let is_old = |wish: &&ThpWish| self.is_at_least(wish.since.0, wish.since.1) == Some(false);
        match &self.traits.thp[..] {
            [] => Reading::Absent(format!("{} has no known wish", self.engine)),
            [only] => Reading::Present(only),
            [.., last] if self.is_at_least(0, 0).is_none() => Reading::Failed(format!(
                "{} wants other transparent huge pages from version {} on, and its version is not known",
                self.product, last.since.0
            )),
            all => match all.iter().rev().find(|wish| !is_old(wish)) {
                Some(wish) => Reading::Present(wish),
                None => Reading::Absent("its version is older than any known wish".to_owned()),
            },
        }
    }

    /// How many processes it has.
    pub fn processes(&self) -> u32 {
        self.pids.len() as u32
    }

    /// The huge page that it takes where its settings name none, which is the host's default.
    pub fn unnamed_huge_page(&self) -> Option<Bytes> {
        const NAMES: [&str; 2] = ["huge_page_size", "large_page_size"];
        let settings = &self.settings.value()?.values;
        let is_none = |value: &String| value.trim_end_matches(char::is_alphabetic) == "0";
        let mut named = NAMES.iter().filter_map(|name| settings.get(*name));
        named.all(is_none).then(|| self.huge_pages.value()?.size_bytes.value().copied())?
    }

    /// A setting by name, or why it is not known.
    pub fn setting(&self, name: &str) -> Reading<String> {
        self.settings.as_ref().and_then(|settings| match settings.values.get(name) {
            Some(value) => Reading::Present(value.clone()),
            None => Reading::Absent(format!("{name} is not among the settings read")),
        })
    }
}

/// How an engine serves its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// A process for each connection.
    Process,
    /// A thread for each connection, or a pool of them, in one process.
    Thread,
    /// One thread for all connections.
    Loop,
    /// Not known: an unrecognised program.
    Unknown,
}

/// A container, from the path of a control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// `docker`, `containerd`, `cri-o`, `podman`, `runc`, `crun`, `lxc`, or `unknown`.
    pub runtime: String,
}

/// A Kubernetes pod, from the path of a control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pod {
    /// Its uid.
    pub uid: String,
    /// `guaranteed`, `burstable` or `besteffort`.
    pub qos: String,
}

/// Memory of one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DatabaseMemory {
    /// The memory that holds the data: shared segments of a multi-process engine, the buffer pool
    /// or heap of a single-process one.
    pub shared_bytes: Reading<Bytes>,
    /// The page size behind most of it.
    pub page_size_bytes: Reading<Bytes>,
    /// Page tables of all its processes (the sum of `VmPTE`).
    pub page_table_bytes: Reading<Bytes>,
    /// Shared memory that its processes have mapped, counted once for each process (the sum of
    /// `RssShmem`): every 64 KiB of it on base pages was a minor fault once.
    pub mapped_shared_bytes: Reading<Bytes>,
    /// Resident memory of the main process.
    pub resident_bytes: Reading<Bytes>,
    /// Huge pages from a pool mapped by the main process (`HugetlbPages`).
    pub hugetlb_bytes: Reading<Bytes>,
    /// Anonymous memory in transparent huge pages.
    pub anon_huge_bytes: Reading<Bytes>,
    /// Whether the kernel may give the main process transparent huge pages (a process can switch
    /// them off for itself, as Redis does).
    pub thp_allowed: Reading<bool>,
    /// The large mappings, largest first.
    pub segments: Reading<Vec<Segment>>,
}

impl DatabaseMemory {
    /// Memory of which nothing is known.
    pub fn unknown(why: &str) -> Self {
        Self {
            shared_bytes: Reading::absent(why),
            page_size_bytes: Reading::absent(why),
            page_table_bytes: Reading::absent(why),
            mapped_shared_bytes: Reading::absent(why),
            resident_bytes: Reading::absent(why),
            hugetlb_bytes: Reading::absent(why),
            anon_huge_bytes: Reading::absent(why),
            thp_allowed: Reading::absent(why),
            segments: Reading::absent(why),
        }
    }
}

/// One large mapping of the main process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Segment {
    /// Its name in `/proc/PID/maps`; empty for private anonymous memory.
    pub name: String,
    /// Its length.
    pub bytes: Bytes,
    /// Whether other processes share it.
    pub shared: bool,
    /// The page size behind it.
    pub page_size_bytes: Reading<Bytes>,
}

/// What a database asks of huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HugePageUse {
    /// `on` (or fail), `try` (fall back silently) or `off`.
    pub asked: String,
    /// The page size it will use.
    pub size_bytes: Reading<Bytes>,
    /// How many of them it needs.
    pub needed_pages: Reading<u64>,
    /// The length of each mapping that is, or would be, on huge pages; none when not known.
    #[serde(default)]
    pub lengths_bytes: Vec<Bytes>,
    /// Where the need was read: the server itself, or how it was computed.
    pub source: String,
}

/// Settings of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Settings {
    /// `socket`, `files` or `command line`.
    pub source: String,
    /// Why a better source gave nothing, in words; empty when the best one answered.
    pub instead_of: String,
    /// Only the settings that rules read; never passwords or texts of queries.
    pub values: BTreeMap<String, String>,
}

/// What a database has counted since it started. Differences over a window are what matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counters {
    /// When the kernel's counts were read, seconds since boot; not known of older captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_at_s: Option<f64>,
    /// When the server told its own counts; not known of older captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at_s: Option<f64>,
    /// Time on CPU of all threads, those of ended processes included.
    pub on_cpu_s: Reading<Seconds>,
    /// Time its living threads were runnable but waited for a CPU (cgroup throttling included).
    pub runnable_s: Reading<Seconds>,
    /// The part of the time on CPU spent in the kernel.
    pub system_s: Reading<Seconds>,
    /// Minor page faults of all processes, those of ended ones included.
    pub minor_faults: Reading<u64>,
    /// Minor page faults of the living processes alone.
    pub minor_faults_living: Reading<u64>,
    /// Page faults that waited for a disk, of all processes, those of ended ones included.
    pub major_faults: Reading<u64>,
    /// What TCP counts in its network namespace.
    pub tcp: Reading<TcpCounts>,
    /// Accesses to cached data, as the engine counts them.
    pub accesses: Reading<Accesses>,
    /// Other counts of the server, by its own names: those that rules read.
    pub told: Reading<BTreeMap<String, u64>>,
}

impl Counters {
    /// Counters of which none was read.
    pub fn unknown(why: &str) -> Self {
        Self {
            counted_at_s: None,
            told_at_s: None,
            on_cpu_s: Reading::absent(why),
            runnable_s: Reading::absent(why),
            system_s: Reading::absent(why),
            minor_faults: Reading::absent(why),
            minor_faults_living: Reading::absent(why),
            major_faults: Reading::absent(why),
            tcp: Reading::absent(why),
            accesses: Reading::absent(why),
            told: Reading::absent(why),
        }
    }

    /// One of the server's own counts, or why it is not known.
    pub fn told(&self, name: &str) -> Reading<f64> {
        self.told.as_ref().and_then(|told| match told.get(name) {
            Some(count) => Reading::Present(*count as f64),
            None => Reading::Absent(format!("the server told no {name}")),
        })
    }
}

/// What TCP has counted in one network namespace so far, for all connections in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TcpCounts {
    /// Segments sent.
    pub sent_segments: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Connections dropped because nobody accepted them in time.
    pub listen_overflows: u64,
}

/// An engine's own count of how often it looked something up in its cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Accesses {
    /// How many.
    pub count: u64,
    /// The counter's name, such as `pg_stat_database.blks_hit`.
    pub counter: String,
    /// How many different cold base pages one access touches, from least to most: an assumption
    /// of the engine's file, stated there.
    pub pages_each: Interval,
    /// Those of the accesses that look something up by a key; none where the engine does not count them
    /// apart, and in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_key: Option<KeyLookups>,
}

/// Look-ups by a key. Each goes to a place that no access before it led to: a touch at random. Accesses
/// beside them go on from one place to the next, or come back to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KeyLookups {
    /// How many.
    pub count: u64,
    /// The counter's name, such as `pg_stat_database.tup_fetched`.
    pub counter: String,
    /// To how many blocks each goes at most.
    pub blocks_each: f64,
    /// How many different cold base pages each of those blocks takes; an assumption of the engine's file.
    pub pages_each: Interval,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let is = |version: &str, major, minor| {
            let version = Reading::Present(version.to_owned());
            Database { version, ..Database::unknown("redis", 7, "not read") }
                .is_at_least(major, minor)
        };
        assert_eq!(is("6.0.16", 6, 2), Some(false));
        assert_eq!(is("6.2.0", 6, 2), Some(true));
        assert_eq!(is("10.11.14-MariaDB", 6, 2), Some(true), "not by their first digit");
        assert_eq!(is("8 or newer", 8, 0), Some(true));
        assert_eq!(is("7 or older", 8, 0), Some(false));
        assert_eq!(is("garbage", 6, 2), None);
        assert_eq!(Database::unknown("redis", 7, "not read").is_at_least(1, 0), None);
    }
}
