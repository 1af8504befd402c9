//! A plan: what to change on a host, made from a saved check, never altered afterwards.

use crate::Gain;
use crate::advice;
use crate::cpus::Cpus;
use crate::{Bytes, Reading};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema's name and version.
pub const SCHEMA: &str = "untax.plan/1";

/// What to change, in order, and what it stands on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// `untax.plan/1`.
    pub schema: String,
    /// The plan's id, under which it is saved.
    pub plan: String,
    /// The check that it was made from.
    pub snapshot: Origin,
    /// How many huge pages everything needs, whether or not it suffers.
    pub sizing: Sizing,
    /// What the executor does, in this order; undone in the opposite one.
    pub steps: Vec<Step>,
    /// What a person does: restarts, settings of databases, files of other hosts.
    pub tasks: Vec<Task>,
    /// What is to be known before it is applied.
    pub warnings: Vec<Warning>,
    /// What other runtimes, networks and volumes would cost the databases, by what was measured here; nothing
    /// where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<advice::Advice>,
    /// What the check expects of each finding that is planned for, alone; none in plans of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Expected>,
    /// A digest of everything above: a plan that was edited is refused.
    pub digest: String,
}

/// The check that a plan was made from, and what of it must still hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Origin {
    /// The run's id.
    pub run: String,
    /// When its window closed.
    pub taken_at: Timestamp,
    /// The facts that the plan stands on, by name: it is refused where one of them differs.
    pub basis: BTreeMap<String, String>,
}

/// One change of the host: one thing that gets another value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// Its name in the plan and in receipts.
    pub id: String,
    /// The remedy that it is part of.
    pub remedy: String,
    /// One line: what changes, from what to what.
    pub summary: String,
    /// The ids of the databases that it is for.
    pub databases: Vec<String>,
    /// What is set.
    pub target: Target,
    /// Its value when the check was made; `None` when it was not there.
    pub from: Option<String>,
    /// Its value to be; `None` to remove it.
    pub to: Option<String>,
    /// A command that must run after the value changed, either way, such as `update-grub`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refresh: Vec<String>,
    /// When it has an effect.
    pub effect: Effect,
}

/// Something with a value that can be read and set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Target {
    /// The number of huge pages configured in the pool of this directory of sysfs.
    Pool {
        /// The directory that holds `nr_hugepages`.
        directory: String,
    },
    /// A file of the kernel that lists words and marks the valid one with brackets.
    Word {
        /// The file.
        file: String,
    },
    /// A file of the kernel that holds a value: a sysctl, a limit of a control group.
    Value {
        /// The file.
        file: String,
    },
    /// A limit on dirty pages, which the kernel keeps as bytes or as percent of memory: the value
    /// is `134217728` or `10%`.
    Dirty {
        /// What the names of both files begin with, such as `/proc/sys/vm/dirty_background`.
        what: String,
    },
    /// What a control group of version 2 may do to one block device: the value is
    /// `rbps=max wbps=1048576 riops=max wiops=max`, or not there.
    DeviceLimit {
        /// The group's `io.max`, which has a line for each device with a limit.
        file: String,
        /// The device, `major:minor`.
        device: String,
    },
    /// A whole file of the administrator's, made by this step alone.
    File {
        /// The file.
        file: String,
    },
    /// Lines between marks at the end of a file that others write.
    Block {
        /// The file.
        file: String,
    },
    /// A unit of systemd: the value is `active` while it runs, and not there otherwise.
    Service {
        /// Its name, such as `untax-cpu-latency.service`.
        unit: String,
    },
    /// Arguments about huge pages of every kernel that `grubby` knows, such as
    /// `hugepagesz=1G hugepages=16`.
    Grubby,
    /// The CPUs of the threads of a process and of all processes that descend from it. The value is
    /// how many of these threads are narrowed to the CPUs: 0 before, and 0 when they were put back.
    Affinity {
        /// Whose threads.
        family: Family,
        /// The CPUs that they are narrowed to.
        cpus: Cpus,
    },
    /// The scheduling class of the threads of a process and of all processes that descend from it. The value
    /// is how many of them have that of a `sched_ext` program: 0 before, and 0 when they were put back.
    Class {
        /// Whose threads.
        family: Family,
    },
}

/// A process and all that descend from it, so that they are found again after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Family {
    /// The process.
    pub root: u32,
    /// When it was started, clock ticks since boot: tells a reused pid apart.
    pub started_ticks: u64,
    /// When it was first changed, clock ticks since boot. A process that lost its parent may descend from
    /// it if it started later, has its user and is in its control groups.
    pub since_ticks: u64,
    /// Its real user.
    pub uid: u32,
    /// Its `/proc/PID/cgroup`.
    pub groups: String,
}

/// When a step has an effect.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// At once.
    Now,
    /// When the database is restarted.
    Restart,
    /// When the machine is booted.
    Reboot,
}

/// What removing one cause is expected to bring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Expected {
    /// The database's id.
    pub database: String,
    /// The rule that found the cause.
    pub rule: String,
    /// By what factor throughput grows without it.
    pub gain: Gain,
}

/// Something that a person does, with all that is needed for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Task {
    /// The remedy that it is part of.
    pub remedy: String,
    /// One line: what to do.
    pub summary: String,
    /// The ids of the databases that it is for.
    pub databases: Vec<String>,
    /// A file that is written beside the plan: its name and its text.
    pub file: Option<(String, String)>,
}

/// What is to be known before a plan is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Warning {
    /// What kind it is, such as `memory-overcommit`.
    pub id: String,
    /// Whether the plan is refused for it.
    pub refuses: bool,
    /// What it is, and what to do about it.
    pub text: String,
}

/// How many huge pages the databases of a host need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sizing {
    /// Each database.
    pub databases: Vec<DatabaseSize>,
    /// All of them together, and what that leaves.
    pub node: NodeSize,
}

/// How many huge pages one database needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DatabaseSize {
    /// The database's id.
    pub id: String,
    /// Its engine.
    pub engine: String,
    /// Pages of each size of the host (`2m`, `1g`, `512m`) that would hold it all; absent where it uses none.
    pub huge_pages: Reading<BTreeMap<String, u64>>,
    /// What the last page of each mapping wastes with pages of each size.
    pub waste_bytes: BTreeMap<String, Bytes>,
    /// What transparent huge pages should be for it: `always`, `madvise` or `never`.
    pub thp: Option<String>,
}

/// How many huge pages a host needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeSize {
    /// Pages of each size (`2m`, `1g`) if all databases used that size.
    pub huge_pages: BTreeMap<String, u64>,
    /// The size that is advised, and why.
    pub advice: Advice,
    /// The advised pages on each NUMA node, in the order of their numbers.
    pub per_numa_node: Vec<u64>,
    /// Memory of the machine.
    pub total_bytes: Reading<Bytes>,
    /// What the advised pool leaves to everything else.
    pub remaining_bytes: Reading<Bytes>,
}

/// Which page size, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Advice {
    /// A size of the host such as `2m`; `none` where it has no huge pages from a pool.
    pub page: String,
    /// The measurement or the rule that it stands on.
    pub why: String,
    /// The measured throughput factor over base pages, where there is one.
    pub gain: Option<Gain>,
}
