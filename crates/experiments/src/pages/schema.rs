//! The result of `untax bench pages`: what `--json` prints.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use untax_core::bench::{Estimate, Noise, RatioVerdict, Warning};
use untax_core::guards::Guard;
use untax_core::{Bytes, Calibration};

/// The schema's name and version.
pub const SCHEMA: &str = "untax.bench.pages/1";

/// What page size is worth on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PagesBench {
    /// `untax.bench.pages/1`.
    pub schema: String,
    /// The run's id, under which it is saved.
    pub run: String,
    /// When it ended.
    pub taken_at: Timestamp,
    /// The processor.
    pub cpu_model: String,
    /// The kernel.
    pub kernel_release: String,
    /// How idle CPUs sleep here; nothing in older runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub idle: String,
    /// Rows in the table; when they were chosen by memory, those of the narrowest rows (each cell
    /// says its own).
    pub rows: u64,
    /// `hash` or `direct`.
    pub access: String,
    /// `process` or `thread`.
    pub model: String,
    /// Length of one trial, seconds.
    pub trial_s: f64,
    /// What the order of the trials and the keys were drawn from; the same seed gives the same.
    #[serde(default)]
    pub seed: u64,
    /// How it was measured, in sentences for a person.
    #[serde(default)]
    pub method: Vec<String>,
    /// Every combination of page, row width and connections.
    pub cells: Vec<Cell>,
    /// Each page size over 4k, paired trial by trial.
    pub ratios: Vec<Ratio>,
    /// The A/A floor.
    pub noise: Noise,
    /// What was asked but could not be had, and what was done instead.
    pub warnings: Vec<Warning>,
    /// What faults and touches cost here, for `check` to use; none where it was measured twice with
    /// different results.
    pub calibration: Option<Calibration>,
    /// Trials that no cell, ratio or floor holds, because a guard was exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<SpoiledTrial>,
    /// Whether all trials were done; `false` when the bench was interrupted.
    pub complete: bool,
}

/// A trial beside which something went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpoiledTrial {
    /// `4k`, `2m`, `1g` or `thp`.
    pub page: String,
    /// Width of a row.
    pub row_bytes: Bytes,
    /// Readers at once.
    pub connections: u32,
    /// The round: trials of the same round are compared with each other.
    pub round: u32,
    /// Reads per second.
    pub reads_per_s: f64,
    /// The guards that were exceeded.
    pub guards: Vec<Guard>,
}

/// One combination of factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// `4k`, `2m`, `1g` or `thp`.
    pub page: String,
    /// Width of a row.
    pub row_bytes: Bytes,
    /// Readers at once.
    pub connections: u32,
    /// `process` or `thread`.
    pub model: String,
    /// Rows in this cell's table.
    #[serde(default)]
    pub rows: u64,
    /// The memory of the table, its index included.
    #[serde(default)]
    pub table_bytes: Bytes,
    /// Reads per second of each trial, in order.
    pub trials: Vec<f64>,
    /// Median of the trials with its 95 % interval.
    pub reads_per_s: Estimate,
    /// Page tables of all readers, measured while they lived.
    pub page_table_bytes: Bytes,
}

/// One page size over another, same rows and connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ratio {
    /// The page size in question.
    pub of: String,
    /// The one it is compared with.
    pub over: String,
    /// Width of a row.
    pub row_bytes: Bytes,
    /// Readers at once.
    pub connections: u32,
    /// Median of the paired ratios.
    pub factor: f64,
    /// Lower bound of the 95 % interval.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// What may be said of it.
    pub verdict: RatioVerdict,
}
