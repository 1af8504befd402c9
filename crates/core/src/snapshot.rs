//! All facts at one moment.

use crate::database::Database;
use crate::host::HostFacts;
use crate::pressure::GroupMemory;
use crate::{Bytes, Reading, Seconds};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// All facts of the host and its databases at one moment; plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Snapshot {
    /// When it was taken (wall clock).
    pub taken_at: Timestamp,
    /// Seconds of the monotonic clock since boot: differences between snapshots are exact.
    pub uptime_s: f64,
    /// The machine.
    pub host: HostFacts,
    /// The databases found, in ascending order of their pid.
    pub databases: Vec<Database>,
    /// All processes but kernel threads. Only their differences matter: they are not saved.
    #[serde(skip)]
    pub processes: Vec<ProcessTime>,
    /// The workers of the kernel, which do what others hand them. Not saved either.
    #[serde(skip)]
    pub kernel_workers: Vec<ProcessTime>,
    /// The memory of all control groups. Only differences matter here too.
    #[serde(skip, default = "not_saved")]
    pub groups: Reading<Vec<GroupMemory>>,
    /// Sandboxes with kernels of their own, which hide what runs in them.
    pub sandboxes: Vec<Sandbox>,
}

impl Snapshot {
    /// The machine alone, without a database or a process on it.
    pub fn of_host(taken_at: Timestamp, uptime_s: f64, host: HostFacts) -> Self {
        Self {
            taken_at,
            uptime_s,
            host,
            databases: Vec::new(),
            processes: Vec::new(),
            kernel_workers: Vec::new(),
            groups: Reading::absent("not read"),
            sandboxes: Vec::new(),
        }
    }

    /// The huge page that is meant where none is named: as the kernel says, or, of older captures,
    /// as a database takes it that names none.
    pub fn default_huge_page(&self) -> Option<Bytes> {
        let memory = self.host.memory.value();
        let said = memory.and_then(|memory| memory.default_huge_page_bytes.value().copied());
        said.or_else(|| self.databases.iter().find_map(Database::unnamed_huge_page))
    }
}

fn not_saved() -> Reading<Vec<GroupMemory>> {
    Reading::Absent("not part of a saved run".to_owned())
}

/// A sandbox with a kernel of its own, seen from the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sandbox {
    /// `gvisor` or `kata`.
    pub runtime: String,
    /// Its process.
    pub pid: u32,
    /// What the processes below it executed of their own programs so far: those of gVisor are what
    /// runs in the sandbox. None when the length of a clock tick is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs_s: Option<Seconds>,
}

/// The processor time of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessTime {
    /// Its pid.
    pub pid: u32,
    /// When it was started, clock ticks since boot: tells a reused pid apart.
    pub started_ticks: u64,
    /// Who started it, or has taken its place.
    pub parent: u32,
    /// Its name.
    pub name: String,
    /// How many threads it has.
    pub threads: u32,
    /// Its time on CPU since then.
    pub cpu_s: Seconds,
    /// How long its threads were ready to run and others had the CPUs, since then; `None` where it has many
    /// threads, of which each counts its own, or the kernel does not count.
    pub waited_s: Option<Seconds>,
    /// That of those it started and awaited the end of, theirs included.
    pub ended_s: Seconds,
    /// The part of `cpu_s` that was in the kernel.
    pub system_s: Seconds,
    /// The part of `ended_s` that was in the kernel.
    pub ended_system_s: Seconds,
}

impl ProcessTime {
    /// The same of its time in the kernel alone.
    #[must_use]
    pub fn in_kernel(&self) -> Self {
        Self { cpu_s: self.system_s, ended_s: self.ended_system_s, ..self.clone() }
    }
}
