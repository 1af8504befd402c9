//! What the results of all benches are made of.

use crate::Interval;
use serde::{Deserialize, Serialize};

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
    /// Its word in results and reports.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Inconclusive => "inconclusive",
        }
    }

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
