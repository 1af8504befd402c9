//! A database whose threads are steered, as `untax steer` tells of it.

use crate::format;
use untax_core::cpus::Cpus;

/// A database whose threads are steered: soft affinity.
#[derive(Debug, Clone, PartialEq)]
pub struct Steered {
    /// Its main process.
    pub pid: u32,
    /// The CPUs that its threads have now.
    pub cpus: Cpus,
    /// The CPUs that it prefers.
    pub preferred: Cpus,
    /// CPU time that it uses, in CPUs.
    pub used_cpus: f64,
    /// Busy share of its preferred CPUs.
    pub preferred_busy_share: f64,
    /// Threads that have these CPUs.
    pub threads: u32,
    /// Threads with CPUs of their own, which are left alone.
    pub own_threads: u32,
    /// What the last trial of more CPUs showed: throughput with them over that at home, and whether it keeps
    /// them; no factor where nothing counts its work.
    pub verdict: Option<(Option<f64>, bool)>,
}

impl Steered {
    /// In a line.
    pub fn line(&self) -> String {
        let Self { cpus, preferred, threads, .. } = self;
        let place =
            if cpus == preferred { "its own".to_owned() } else { format!("prefers {preferred}") };
        let busy = format::percent(self.preferred_busy_share);
        let used = format::number(self.used_cpus);
        format!(
            "steered: CPUs {cpus} ({place}), {used} used, its own {busy} busy, {threads} threads"
        )
    }

    /// What more CPUs brought, in a line.
    pub fn trial(&self) -> String {
        match self.verdict {
            None => "more CPUs were not tried yet".to_owned(),
            Some((None, _)) => {
                "more CPUs: not measured, because nothing counts its work".to_owned()
            }
            Some((Some(factor), is_worth)) => {
                let so = if is_worth { "it keeps them" } else { "it stays on its own" };
                format!("more CPUs: {factor:.2}× the throughput; {so}")
            }
        }
    }
}
