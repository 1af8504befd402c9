//! The result of `untax check`: what `--json` prints.

use crate::activity::Piece;
use crate::database::{Cgroup, Container, DatabaseMemory, HugePageUse, Model, Pod, Settings};
use crate::finding::{EVERY_RULE, Finding, Scope, Tax, Unmeasured};
use crate::host::HostFacts;
use crate::ledger::Ledger;
use crate::network::ClientNetwork;
use crate::pressure::Pressure;
use crate::{Bytes, Calibration, Database, Io, Reading, Seconds, Snapshot, reason};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "untax.check/1";

/// One check of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Check {
    /// `untax.check/1`.
    pub schema: String,
    /// The run's id, under which it is saved; empty where it was not saved.
    pub run: String,
    /// When the window closed.
    pub taken_at: Timestamp,
    /// Length of the window; 0 for a check without one.
    pub window_s: f64,
    /// What the check itself cost; absent in a replay.
    #[serde(rename = "self")]
    pub own: Reading<OwnCost>,
    /// The machine.
    pub host: HostFacts,
    /// What page faults and page walks cost on the machine; the taxes stand on it.
    pub calibration: Reading<Calibration>,
    /// What the disks did; absent in runs of older versions.
    #[serde(default = "not_watched")]
    pub io: Reading<Io>,
    /// The databases, and what the rules say of each.
    pub databases: Vec<Checked>,
    /// What the rules say of the host.
    pub findings: Vec<Finding>,
    /// What could not be measured on the host.
    pub unmeasured: Vec<Unmeasured>,
}

fn not_read() -> Reading<Pressure> {
    Reading::Absent("the version that made this run did not read it".to_owned())
}

fn network_not_read() -> ClientNetwork {
    ClientNetwork::unknown("the version that made this run did not read it")
}

fn not_followed() -> Reading<Ledger> {
    Reading::Absent("the version that made this run did not follow waits".to_owned())
}

fn not_sampled() -> Reading<Seconds> {
    Reading::Absent("the version that made this run did not tell it apart".to_owned())
}

fn not_named() -> Reading<String> {
    Reading::Absent("the version that made this run did not name it".to_owned())
}

fn not_watched() -> Reading<Io> {
    Reading::Absent("the version that made this run did not watch the disks".to_owned())
}

/// What a check cost the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnCost {
    /// Processor time, children included.
    pub cpu_s: Seconds,
    /// Processor time that tracing took in the kernel, on top of that.
    pub tracing_s: Reading<Seconds>,
    /// The most memory resident at once, of the largest process.
    pub rss_bytes: Bytes,
}

/// One database with its findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checked {
    /// `engine:pid`.
    pub id: String,
    /// Its stable name, which outlives restarts: `ENGINE@PORT` (else its data directory) on a host,
    /// `NAMESPACE/POD/CONTAINER` in a cluster; left out in runs of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The engine's id.
    pub engine: String,
    /// The product's name.
    pub product: String,
    /// The server's version.
    pub version: Reading<String>,
    /// Its main process.
    pub pid: u32,
    /// How it serves its clients.
    pub model: Model,
    /// Number of processes.
    pub processes: u32,
    /// Client connections.
    pub connections: Reading<u32>,
    /// Its container.
    pub container: Option<Container>,
    /// Its pod.
    pub pod: Option<Pod>,
    /// The systemd unit that its processes are in, such as `postgresql@15-main.service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its data directory, which tells several of one kind apart.
    pub data_directory: Reading<String>,
    /// Its memory.
    pub memory: DatabaseMemory,
    /// What it asks of huge pages.
    pub huge_pages: Reading<HugePageUse>,
    /// The settings read and where from.
    pub settings: Reading<Settings>,
    /// Where its time went.
    pub time: TimeShares,
    /// Its active time piece by piece over the window, in order; empty where it was not traced, and in runs of
    /// older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_pieces: Vec<Piece>,
    /// Each active second of its threads, allocated once: to what they did, or what those did that they waited
    /// for; absent in runs of older versions.
    #[serde(default = "not_followed")]
    pub ledger: Reading<Ledger>,
    /// What the kernel counts without tracing of tasks that were held up, others' too; absent in runs
    /// of older versions.
    #[serde(default = "not_read")]
    pub pressure: Reading<Pressure>,
    /// What lies between it and its clients; absent in runs of older versions.
    #[serde(default = "network_not_read")]
    pub network: ClientNetwork,
    /// The taxes of the platform's causes together; `None` when none is measured.
    pub tax: Option<Tax>,
    /// Those of causes of scope database together. Both are parts of one whole: see
    /// [`Portions`](crate::Portions).
    #[serde(default)]
    pub database_tax: Option<Tax>,
    /// What the rules found, the dearest first.
    pub findings: Vec<Finding>,
    /// What could not be measured.
    pub unmeasured: Vec<Unmeasured>,
}

impl Check {
    /// The databases of a snapshot, before any rule looked at them.
    pub fn of(snapshot: &Snapshot, run: &str, why: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            run: run.to_owned(),
            taken_at: snapshot.taken_at,
            window_s: 0.0,
            own: Reading::absent(why),
            host: snapshot.host.clone(),
            calibration: Reading::absent(why),
            io: Reading::absent(why),
            databases: snapshot.databases.iter().map(|found| Checked::of(found, why)).collect(),
            findings: Vec::new(),
            unmeasured: Vec::new(),
        }
    }

    /// What is missing because untax could not look: with any of it, the check saw only a part.
    pub fn unseen(&self) -> impl Iterator<Item = &Unmeasured> {
        let of_databases = self.databases.iter().flat_map(|database| &database.unmeasured);
        of_databases.chain(&self.unmeasured).filter(|gap| reason::is_of_part(&gap.id))
    }

    /// Whether a database was there when the window opened and ended, or was restarted, meanwhile.
    pub fn lost_a_database(&self) -> bool {
        self.unmeasured.iter().any(|unmeasured| unmeasured.rule == EVERY_RULE)
    }
}

impl Checked {
    /// A database, before any rule looked at it. Where its time went is not known, for this reason.
    pub fn of(database: &Database, why: &str) -> Self {
        Self {
            id: database.id.clone(),
            name: database.name.clone(),
            engine: database.engine.clone(),
            product: database.product.clone(),
            version: database.version.clone(),
            pid: database.pid,
            model: database.model,
            processes: database.processes(),
            connections: database.connections.clone(),
            container: database.container.clone(),
            pod: database.pod.clone(),
            unit: database.cgroup.value().and_then(Cgroup::unit),
            data_directory: database.data_directory.clone(),
            memory: database.memory.clone(),
            huge_pages: database.huge_pages.clone(),
            settings: database.settings.clone(),
            time: TimeShares::unknown(why),
            time_pieces: Vec::new(),
            ledger: Reading::absent(why),
            pressure: Reading::absent(why),
            network: ClientNetwork::unknown(why),
            tax: None,
            database_tax: None,
            findings: Vec::new(),
            unmeasured: Vec::new(),
        }
    }

    /// The taxes of causes of one scope together.
    pub fn tax_of(&self, scope: Scope) -> Option<&Tax> {
        match scope {
            Scope::Platform => self.tax.as_ref(),
            Scope::Database => self.database_tax.as_ref(),
        }
    }

    /// What the rules found of one scope.
    pub fn findings_of(&self, scope: Scope) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.scope == scope)
    }

    /// Whether both are servers of the same data, perhaps started again in between: of the same kind, at
    /// the same place, which containers each have for themselves. Not where the place is not known.
    pub fn has_data_of(&self, other: &Self) -> bool {
        let place = self.data_directory.value();
        place.is_some()
            && place == other.data_directory.value()
            && self.engine == other.engine
            && self.container == other.container
    }
}

/// Where the time of the threads went that serve a database's requests. What others do is in the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimeShares {
    /// Everything but idle and unaccounted.
    pub active_s: Reading<Seconds>,
    /// On a CPU, page faults included.
    pub on_cpu_s: Reading<Seconds>,
    /// Of it in page faults, as samples of stacks tell: nearly all are minor ones, and what the others
    /// wait for a disk is `disk_s`. Absent in runs of older versions.
    #[serde(default = "not_sampled")]
    pub minor_faults_s: Reading<Seconds>,
    /// Waiting for a CPU, cgroup throttling included.
    pub runnable_s: Reading<Seconds>,
    /// Held back by a CPU limit.
    pub throttled_s: Reading<Seconds>,
    /// And waiting until a CPU that slept is awake, within it too; not told apart in older runs.
    #[serde(default = "not_sampled")]
    pub wake_up_s: Reading<Seconds>,
    /// Waiting for a disk.
    pub disk_s: Reading<Seconds>,
    /// Reclaiming memory.
    pub reclaim_s: Reading<Seconds>,
    /// Waiting for a lock.
    pub lock_s: Reading<Seconds>,
    /// Waiting for the network to take data.
    pub network_s: Reading<Seconds>,
    /// Waiting for a client or a timer.
    pub idle_s: Reading<Seconds>,
    /// Waiting in a way of unknown meaning: none of it counts as active, any part of it may be. So it
    /// widens the intervals of taxes.
    pub unaccounted_s: Reading<Seconds>,
    /// The system call of the longest such wait; absent where there was none, and in runs of older
    /// versions.
    #[serde(default = "not_named")]
    pub unaccounted_call: Reading<String>,
}

impl TimeShares {
    /// Time of which nothing is known.
    pub fn unknown(why: &str) -> Self {
        Self {
            active_s: Reading::absent(why),
            on_cpu_s: Reading::absent(why),
            minor_faults_s: Reading::absent(why),
            runnable_s: Reading::absent(why),
            throttled_s: Reading::absent(why),
            wake_up_s: Reading::absent(why),
            disk_s: Reading::absent(why),
            reclaim_s: Reading::absent(why),
            lock_s: Reading::absent(why),
            network_s: Reading::absent(why),
            idle_s: Reading::absent(why),
            unaccounted_s: Reading::absent(why),
            unaccounted_call: Reading::absent(why),
        }
    }
}
