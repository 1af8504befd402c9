//! The result of a platform bench: what `--json` prints.

use super::arm::Arm;
use super::cell::{Better, Published, StandsFor};
use super::measured::{Extra, Measured};
use super::placement::{Cpus, Placement};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use untax_core::bench::{Estimate, Noise, RatioVerdict, Warning};
use untax_core::guards::Guard;

/// What the alternatives of one layer cost on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlatformBench {
    /// `untax.bench.runtime/1`, `untax.bench.network/1` or `untax.bench.storage/1`.
    pub schema: String,
    /// The run's id, under which it is saved.
    pub run: String,
    /// When it ended.
    pub taken_at: Timestamp,
    /// Whether it was measured on nodes of a cluster rather than on the machine that it ran on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_cluster: bool,
    /// The processor.
    pub cpu_model: String,
    /// The kernel.
    pub kernel_release: String,
    /// How idle CPUs sleep here, which decides comparisons with few clients.
    pub idle: String,
    /// What the order of the trials was drawn from.
    pub seed: u64,
    /// The time that it might take, seconds.
    pub budget_s: f64,
    /// The time that its trials took, those of earlier parts included, seconds.
    pub spent_s: f64,
    /// Busy databases beside which it ran, because `--beside` allowed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// Id of the arm that all others are divided by.
    pub baseline: String,
    /// All arms, those that cannot run here with the reason.
    pub arms: Vec<Arm>,
    /// Every cell, those that were not measured with the reason.
    pub cells: Vec<CellResult>,
    /// How times grow along series of arms, where there are such series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// Cells whose baseline differs from itself, which is noise: of those that were measured.
    pub aa: AaCount,
    /// What `--fail-if` asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<GuardResult>,
    /// What it must be read with.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Whether it came to its end; `false` when it was interrupted.
    pub complete: bool,
}

/// How the time of one operation grows along a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// The workload's id.
    pub workload: String,
    /// Where servers and clients ran.
    pub placement: Placement,
    /// The series' id.
    pub series: String,
    /// What its number counts.
    pub counts: String,
    /// The unit of both values: that of the workload.
    pub unit: String,
    /// The value at none.
    pub at_none: Estimate,
    /// What a thousand more add.
    pub per_thousand: Estimate,
    /// Blocks that it stands on.
    pub blocks: u32,
    /// The smallest and the largest number.
    pub numbers: [u32; 2],
    /// How far the median of an arm lies from the line at most, as a share of that median.
    pub most_apart: f64,
}

/// How often the baseline seems to differ from itself.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct AaCount {
    /// Cells in which the interval of baseline over baseline excludes 1.
    pub differ: u32,
    /// Cells with enough pairs to tell.
    pub cells: u32,
}

/// One workload in one placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellResult {
    /// The workload's id.
    pub workload: String,
    /// What it does.
    pub summary: String,
    /// The unit of its values.
    pub unit: String,
    /// Which values are the good ones.
    pub better: Better,
    /// Whether it explains other cells rather than being compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explains: bool,
    /// Where servers and clients ran.
    pub placement: Placement,
    /// Their CPUs; none: all.
    pub cpus: Cpus,
    /// How it stands.
    pub state: CellState,
    /// Why it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Blocks that were measured.
    pub blocks: u32,
    /// Every arm, the baseline first.
    pub arms: Vec<ArmResult>,
    /// The databases that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<StandsFor>,
    /// What others published of this work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The baseline over itself, which is noise.
    pub noise: Option<Noise>,
    /// The baseline over itself as if it were another arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aa: Option<Estimate>,
}

/// How a cell, or an arm in it, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// There are trials that count.
    Measured,
    /// There are, but something else was used up: the values tell of that.
    Saturated,
    /// All trials were spoiled by what went on beside them.
    Spoiled,
    /// It cannot be measured here, or failed.
    Failed,
    /// The time did not suffice.
    NotReached,
}

impl CellState {
    /// Its name in results.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Saturated => "saturated",
            Self::Spoiled => "spoiled",
            Self::Failed => "failed",
            Self::NotReached => "not-reached",
        }
    }
}

/// One arm in one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ArmResult {
    /// The arm's id.
    pub arm: String,
    /// How it stands.
    pub state: CellState,
    /// Why it is not simply measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Median of the trials that count, in the cell's unit.
    pub value: Option<Estimate>,
    /// Medians of what else was measured.
    pub extras: Vec<Extra>,
    /// How many times as fast as the baseline; none for the baseline itself.
    pub ratio: Option<Ratio>,
    /// What its system calls explain of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
    /// Every trial.
    pub trials: Vec<TrialResult>,
}

/// A ratio as system calls explain it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explained {
    /// System calls of an operation, counted in the baseline.
    pub calls: f64,
    /// What each costs more than in the baseline, nanoseconds.
    pub more_ns_each: f64,
    /// What an operation takes of the baseline's CPU, nanoseconds.
    pub operation_ns: f64,
    /// The ratio if nothing else were different.
    pub factor: f64,
}

/// An arm over the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ratio {
    /// Median of the paired ratios: above 1 the arm is faster, also where lower values are the good ones.
    pub factor: f64,
    /// Lower bound of the 95 % interval.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Pairs that it stands on.
    pub pairs: u32,
    /// What may be said of it.
    pub verdict: RatioVerdict,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialResult {
    /// Trials of the same block are compared with each other.
    pub block: u32,
    /// What it gave.
    #[serde(flatten)]
    pub measured: Measured,
    /// The guards that were exceeded: such a trial counts for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<Guard>,
}

/// What came of one `--fail-if`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuardResult {
    /// As it was asked.
    pub asked: String,
    /// The cell that it was judged in; none where it could not be judged in any.
    pub cell: Option<String>,
    /// Whether it failed.
    pub failed: bool,
    /// What was measured, or why it cannot be judged.
    pub said: String,
}

impl PlatformBench {
    /// The arm of an id.
    pub fn arm(&self, id: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.id == id)
    }

    /// Cells that are compared and were measured.
    pub fn measured(&self) -> impl Iterator<Item = &CellResult> {
        self.cells.iter().filter(|cell| cell.state == CellState::Measured && !cell.explains)
    }
}

impl CellResult {
    /// Its name in messages.
    pub fn name(&self) -> String {
        format!("{} @ {}", self.workload, self.placement.id())
    }

    /// An arm in it.
    pub fn arm(&self, id: &str) -> Option<&ArmResult> {
        self.arms.iter().find(|arm| arm.arm == id)
    }
}
