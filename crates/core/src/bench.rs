//! The result of `untax bench pages`: what `--json` prints.

use crate::{Bytes, Calibration, Interval};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const PAGES_SCHEMA: &str = "untax.bench.pages/1";

/// What page size is worth on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    pub warnings: Vec<String>,
    /// What faults and touches cost here, for `check` to use.
    pub calibration: Option<Calibration>,
    /// Whether all trials were done; `false` when the bench was interrupted.
    pub complete: bool,
}

/// One combination of factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// A median with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl From<Interval> for Estimate {
    fn from(Interval { mid, low, high }: Interval) -> Self {
        Self { median: mid, low, high }
    }
}

/// One page size over another, same rows and connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// What may be said of a ratio, given its interval and the noise floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RatioVerdict {
    /// The whole interval lies above the noise floor.
    Faster,
    /// The whole interval lies below the noise floor.
    Slower,
    /// Neither.
    Inconclusive,
}

impl RatioVerdict {
    /// Judges a ratio against a noise floor given as a share (0.03 means ±3 %).
    pub fn judge(ratio: Interval, floor: f64) -> Self {
        if ratio.low > 1.0 + floor {
            Self::Faster
        } else if ratio.high < 1.0 / (1.0 + floor) {
            Self::Slower
        } else {
            Self::Inconclusive
        }
    }
}

/// How much two identical measurements differ here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Ratios of neighbouring trials of the same cell.
    pub ratios: Vec<f64>,
    /// How far the median of as many of them as there are trials strays from 1 by chance, as a
    /// share (95th percentile); 1 when there is no ratio to tell from.
    pub floor: f64,
}
