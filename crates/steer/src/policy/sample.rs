//! What the policy sees of a moment, and what it says to do.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use untax_core::Reading;
use untax_core::cpus::Cpus;

/// What was seen since the sample before.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// The moment, seconds on a clock that nobody sets.
    pub now_s: f64,
    /// The busy share of each CPU that is online.
    pub busy: BTreeMap<u32, f64>,
    /// Each instance, in the order in which the policy was given them.
    pub instances: Vec<Seen>,
}

impl Sample {
    /// The mean busy share of these CPUs; 0 of none.
    pub fn busy_share(&self, cpus: &Cpus) -> f64 {
        let shares: Vec<f64> = cpus.iter().filter_map(|cpu| self.busy.get(&cpu).copied()).collect();
        if shares.is_empty() { 0.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
    }
}

/// What was seen of one instance.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The CPUs of its cpuset that are online.
    pub allowed: Cpus,
    /// CPU time that it used, in CPUs.
    pub used_cpus: f64,
    /// How much work it did; none before that is read for the first time.
    pub work: Reading<Option<Work>>,
}

/// How much work an instance has done so far, in whatever unit counts it; the last time that was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// The count.
    pub count: f64,
    /// When it was read.
    pub at_s: f64,
}

/// What to do about one instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its place among the instances.
    pub instance: usize,
    /// The CPUs that its threads are to have.
    pub cpus: Cpus,
    /// Why.
    pub why: Why,
}

/// Why the CPUs of an instance change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Steering begins: it gets its preferred CPUs.
    Start,
    /// Its preferred CPUs are full and others are idle.
    Spill,
    /// An owner of CPUs that it used needs them.
    Evict,
    /// Its load fits into its preferred CPUs.
    Home,
    /// It goes home for a while, so that its throughput there is measured too.
    Trial,
    /// The trial showed that more CPUs pay.
    Worth,
    /// The trial showed that more CPUs bring nothing.
    Worthless,
    /// Its cpuset, or which CPUs are online, changed.
    Cpuset,
}

impl Why {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Start => "steering began",
            Self::Spill => "its preferred CPUs are full and others idle",
            Self::Evict => "the owner of the other CPUs needs them",
            Self::Home => "its load fits into its preferred CPUs",
            Self::Trial => "to measure its throughput at home",
            Self::Worth => "more CPUs raised its throughput",
            Self::Worthless => "more CPUs did not raise its throughput",
            Self::Cpuset => "its cpuset or the CPUs online changed",
        }
    }
}
