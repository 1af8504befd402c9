//! What steering tells: `untax.steer/1`, one object on a line.

use crate::policy::{Verdict, Why};
use serde::{Deserialize, Serialize};
use untax_core::cpus::Cpus;

/// The schema's name and version.
pub const SCHEMA: &str = "untax.steer/1";

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// `untax.steer/1`.
    pub schema: String,
    /// Seconds since steering began.
    pub at_s: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Steering began.
    Started {
        /// The id under which masks are in the journal.
        run: String,
        /// `user` or `ext`.
        backend: String,
        /// The process that puts them back if this one is killed.
        guard_pid: Option<u32>,
        /// The instances.
        instances: Vec<Begun>,
        /// What a person should know.
        warnings: Vec<String>,
    },
    /// The CPUs of an instance changed.
    Changed {
        /// Its name.
        instance: String,
        /// The CPUs that its threads have.
        cpus: Cpus,
        /// Why.
        why: Why,
        /// Threads whose mask was set.
        threads: u32,
    },
    /// A trial of more CPUs ended.
    Judged {
        /// The instance's name.
        instance: String,
        /// What it showed.
        #[serde(flatten)]
        verdict: Verdict,
    },
    /// How things stand; once in a while.
    State {
        /// Each instance.
        instances: Vec<Standing>,
        /// What steering itself costs.
        #[serde(rename = "self")]
        own: OwnCost,
    },
    /// The main process of an instance ended.
    Gone {
        /// Its name.
        instance: String,
    },
    /// The guard ended, and another was started.
    GuardRenewed,
    /// Steering ended, and all threads have the CPUs of their cpuset again.
    Ended {
        /// What steering itself cost.
        #[serde(rename = "self")]
        own: OwnCost,
    },
}

/// An instance when steering begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Begun {
    /// Its name.
    pub name: String,
    /// Its main process.
    pub pid: u32,
    /// Its preferred CPUs.
    pub preferred: Cpus,
    /// The CPUs of its cpuset that are online.
    pub allowed: Cpus,
    /// Threads with a mask of their own, which are left alone.
    pub own_threads: u32,
    /// `cgroup` where a control group counts its CPU time, `threads` where each thread is read.
    pub usage: String,
}

/// How an instance stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// The CPUs that its threads have.
    pub cpus: Cpus,
    /// Its preferred CPUs.
    #[serde(default)]
    pub preferred: Cpus,
    /// CPU time that it used, in CPUs.
    pub used_cpus: f64,
    /// Busy share of its preferred CPUs.
    pub preferred_busy_share: f64,
    /// Busy share of all CPUs that it may use.
    pub allowed_busy_share: f64,
    /// Threads that have these CPUs.
    pub threads: u32,
    /// Threads with a mask of their own.
    pub own_threads: u32,
    /// What the last trial showed.
    pub verdict: Option<Verdict>,
}

/// What steering itself costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnCost {
    /// CPU time so far, the programs that ask servers included.
    pub cpu_s: f64,
    /// The same as a share of one CPU.
    pub share: f64,
    /// The time between two samples now: it grows where a sample costs much.
    pub period_s: f64,
    /// The longest sample so far.
    pub slowest_sample_s: f64,
}
