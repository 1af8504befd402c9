//! How far a trial is.

use super::sample::Work;
use untax_core::cpus::Cpus;

/// How far a trial is.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Trial {
    /// There is none.
    #[default]
    None,
    /// It has more CPUs since then; the load is to settle.
    Away { since_s: f64 },
    /// Its work is counted since then.
    AwayCounted { first: Work },
    /// It is at home since then.
    Home { since_s: f64, away: Rate },
    /// Its work is counted since then.
    HomeCounted { first: Work, away: Rate },
}

/// Throughput with more CPUs, and which those were.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// Work per second.
    pub per_s: f64,
    /// The CPUs that it had.
    pub cpus: Cpus,
}

impl Trial {
    /// Whether the instance is at home to be measured.
    pub fn is_at_home(&self) -> bool {
        matches!(self, Self::Home { .. } | Self::HomeCounted { .. })
    }
}
