//! What a person may set for each instance.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Busy share of the preferred CPUs from which on an instance may use others: the threshold of
/// `cpuset.preferred_cpus` in the kernel of openEuler (`dynamic_affinity_util_low_pct`, 85 %).
pub const FULL: f64 = 0.85;

/// How far below its threshold an instance must be to go home: without a gap it would go to and fro at
/// the threshold.
pub const HOME: f64 = 0.9;

/// The factor of throughput by which a spill must pay: the one that verdicts are asked for.
pub const WORTH: f64 = untax_core::power::FACTOR;

/// The numbers of `preferred:allowed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ratio {
    /// The first.
    pub preferred: u32,
    /// The second.
    pub allowed: u32,
}

impl Ratio {
    /// `preferred` over `allowed`.
    pub fn value(self) -> f64 {
        f64::from(self.preferred) / f64::from(self.allowed)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.preferred, self.allowed)
    }
}

/// A text is no ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no ratio preferred:allowed such as 5:4; both numbers are 1 or more")]
pub struct RatioError(String);

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, RatioError> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
        let ratio = text.split_once(':').and_then(|(preferred, allowed)| {
            Some(Self { preferred: number(preferred)?, allowed: number(allowed)? })
        });
        ratio.ok_or_else(|| RatioError(text.to_owned()))
    }
}

/// When an instance may use CPUs beside its preferred ones.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// While its preferred CPUs are busy for more than [`FULL`] of the time.
    #[default]
    Full,
    /// While the busy share of its preferred CPUs over that of all allowed ones is above this ratio. So a
    /// larger ratio keeps it home longer: 100:1 is harder than 5:4.
    Above(Ratio),
    /// Never: a hard partition.
    Never,
}

impl Rule {
    /// Whether it says to spill, given the busy share of the preferred CPUs and of all allowed ones. At
    /// `margin` below 1 it says so earlier.
    pub fn spills(self, preferred: f64, allowed: f64, margin: f64) -> bool {
        match self {
            Self::Full => preferred > FULL * margin,
            Self::Above(ratio) => preferred > allowed * ratio.value() * margin,
            Self::Never => false,
        }
    }
}

/// What a person may set for each instance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tunables {
    /// When to use CPUs beside the preferred ones.
    pub rule: Rule,
    /// After its CPUs changed, how long they stay unless an owner needs its own back.
    pub hold: Duration,
    /// For how long throughput is measured on each side of a trial.
    pub judge: Duration,
}

impl Default for Tunables {
    /// A second outlasts the pauses of a busy load. Servers count for at least a second before they tell
    /// (`PGSTAT_MIN_INTERVAL` of PostgreSQL), so that five seconds are wrong by a fifth of a client at most.
    fn default() -> Self {
        Self { rule: Rule::Full, hold: Duration::from_secs(1), judge: Duration::from_secs(5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_ratio_is_harder() {
        let rule = |text: &str| Rule::Above(text.parse().unwrap());
        let (hard, soft) = (rule("100:1"), rule("5:4"));
        // One busy half of a machine whose other half idles.
        assert!(soft.spills(1.0, 0.5, 1.0) && !hard.spills(1.0, 0.5, 1.0));
        for step in 0..=100 {
            let (preferred, allowed) = (f64::from(step % 11) / 10.0, f64::from(step / 11) / 10.0);
            let spills = |rule: Rule| rule.spills(preferred, allowed, 1.0);
            assert!(!spills(hard) || spills(soft), "{preferred} {allowed}");
        }
    }

    #[test]
    fn ratios_are_two_numbers() {
        assert_eq!("5:4".parse::<Ratio>().unwrap().to_string(), "5:4");
        for wrong in ["", "5", "5:", ":4", "0:4", "5:0", "-1:2", "a:b"] {
            assert!(wrong.parse::<Ratio>().is_err(), "{wrong}");
        }
    }
}
