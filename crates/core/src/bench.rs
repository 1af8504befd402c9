//! What the results of all benches are made of.

use crate::Interval;
use serde::{Deserialize, Serialize};

/// Something that a result must be read with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "SavedWarning")]
pub struct Warning {
    /// The id of its kind, such as `few-trials`; empty in results of older versions.
    pub id: String,
    /// What is the case, and what to do about it.
    pub text: String,
}

/// A warning as results hold it: older ones have its text alone.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum SavedWarning {
    Text(String),
    Whole { id: String, text: String },
}

impl From<SavedWarning> for Warning {
    fn from(saved: SavedWarning) -> Self {
        match saved {
            SavedWarning::Text(text) => Self { id: String::new(), text },
            SavedWarning::Whole { id, text } => Self { id, text },
        }
    }
}

/// What all warnings of one kind have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarningKind {
    /// What scripts use, kebab-case.
    pub id: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// What to do about it.
    pub action: &'static str,
}

/// A median with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Noise {
    /// Ratios of neighbouring trials of the same cell.
    pub ratios: Vec<f64>,
    /// How far the median of as many of them as there are trials strays from 1 by chance, as a
    /// share (95th percentile); 1 when there is no ratio to tell from.
    pub floor: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_of_an_older_result_has_no_id() {
        let read = |json: &str| serde_json::from_str::<Warning>(json).unwrap();
        let few = Warning { id: "few-trials".to_owned(), text: "3 trials".to_owned() };
        assert_eq!(read(&serde_json::to_string(&few).unwrap()), few);
        assert_eq!(read(r#""3 trials""#), Warning { id: String::new(), ..few });
    }
}
