//! The result of `untax bench locality`: what `--json` prints.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use untax_core::Bytes;
use untax_core::bench::Warning;
use untax_core::timeline::{Kind, Timeline};

/// The schema's name and version.
pub const SCHEMA: &str = "untax.bench.locality/1";

/// What was done to a database, and what its timeline says of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LocalityBench {
    /// `untax.bench.locality/1`.
    pub schema: String,
    /// The run's id, under which it is saved.
    pub run: String,
    /// When it ended.
    pub taken_at: Timestamp,
    /// The processor.
    pub cpu_model: String,
    /// The kernel.
    pub kernel_release: String,
    /// How idle CPUs sleep here.
    pub idle: String,
    /// The time it was to take, seconds.
    pub budget_s: f64,
    /// The length of a recorded window, seconds.
    pub window_s: f64,
    /// How long nothing was changed before each step and after the last one, seconds.
    pub level_s: f64,
    /// The database, its load, its limits and its disks.
    pub scene: Scene,
    /// Every step, in the order in which it was made.
    pub steps: Vec<Step>,
    /// Changes that the timeline found and that belong to no step.
    pub others: Vec<Seen>,
    /// What `--fail-if` asked for, and whether it is so.
    pub guards: Vec<GuardResult>,
    /// What is to be known of the result.
    pub warnings: Vec<Warning>,
    /// The recording, which `untax timeline` reads.
    pub recording: String,
    /// What the timeline says of it.
    pub timeline: Timeline,
    /// Whether all steps were made; `false` when the bench was interrupted.
    pub complete: bool,
}

/// The database, its load, its limits and its disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scene {
    /// Clients at once, each with a request at any moment.
    pub clients: u32,
    /// Tables and their indexes, each in a tablespace of its own.
    pub tables: u32,
    /// All of them together.
    pub data_bytes: Bytes,
    /// The memory that the server may take, page cache included.
    pub memory_limit_bytes: Bytes,
    /// Requests a second without limits of time and disk.
    pub unlimited_per_s: f64,
    /// Processor time of a request then, seconds.
    pub cpu_s_of_request: f64,
    /// Reads of a request from its disk then.
    pub reads_of_request: f64,
    /// CPUs that the server may use before the first step.
    pub cpus_before: f64,
    /// And after it.
    pub cpus_after: f64,
    /// Reads a second that the slow disk does for the server.
    pub slow_reads_per_s: u64,
}

/// Something that was done on purpose, and what the timeline says of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Step {
    /// `cpu-limit`, or `tablespace-1` and so on.
    pub id: String,
    /// What was done, in words.
    pub text: String,
    /// When it was begun.
    pub from: Timestamp,
    /// When it was done; a table is locked while it is copied.
    pub to: Timestamp,
    /// The causes, by their ids, that name it rightly.
    pub expected: Vec<String>,
    /// What the load generator counted; `None` where too little of it was seen.
    pub client: Option<Levels>,
    /// The change that the timeline found within two windows; `None`: it found none.
    pub seen: Option<Seen>,
    /// Whether the largest cause of that change is an expected one.
    pub named: bool,
}

/// Throughput before and after, requests a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Levels {
    /// Before.
    pub before_per_s: f64,
    /// After.
    pub after_per_s: f64,
}

impl Levels {
    /// By how much throughput changed.
    pub fn gained_per_s(&self) -> f64 {
        self.after_per_s - self.before_per_s
    }
}

/// A change that the timeline found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seen {
    /// Its number in the timeline.
    pub rank: u32,
    /// How throughput changed.
    pub kind: Kind,
    /// When it began.
    pub from: Timestamp,
    /// When it had ended.
    pub to: Timestamp,
    /// Windows between the step and this change: 0 where it began while the step was made; `None` of a change that
    /// belongs to no step.
    pub windows_off: Option<f64>,
    /// Requests a second before and after, by the server's own count.
    pub levels: Levels,
    /// Its causes by their ids, the largest first; none: unexplained.
    pub causes: Vec<String>,
    /// What the expected causes brought, over what throughput changed by; above 1 where other waits took some back;
    /// `None` where time was not measured, or no expected cause was named.
    pub expected_share: Option<f64>,
}

/// What `--fail-if` asked for, and whether it is so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuardResult {
    /// The expression.
    pub asked: String,
    /// The number that was counted.
    pub value: u32,
    /// Whether the bench fails by it.
    pub failed: bool,
}

impl LocalityBench {
    /// Steps that the timeline found.
    pub fn found(&self) -> u32 {
        self.steps.iter().filter(|step| step.seen.is_some()).count() as u32
    }

    /// Steps that it found and named rightly.
    pub fn named(&self) -> u32 {
        self.steps.iter().filter(|step| step.named).count() as u32
    }
}
