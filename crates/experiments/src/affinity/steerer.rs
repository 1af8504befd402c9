//! Steering beside a trial.

use std::time::Duration;
use untax_core::Reading;
use untax_core::cpus::Cpus;
use untax_steer::policy::{Rule, Tunables};
use untax_steer::resolve::Candidate;
use untax_steer::{Backend, Chosen, Order};

/// A process tree and the CPUs that it prefers.
pub(super) struct Tree {
    pub(super) name: String,
    /// The id of its engine, by which its work is counted.
    pub(super) engine: &'static str,
    pub(super) pid: u32,
    pub(super) preferred: Cpus,
}

/// These trees by a rule. Holds and trials are shorter than by default: a trial of the bench has seconds to
/// settle, not minutes.
pub(super) fn order(trees: &[Tree], rule: Rule) -> Order {
    let tunables =
        Tunables { rule, hold: Duration::from_millis(500), judge: Duration::from_secs(2) };
    let chosen = |tree: &Tree| Chosen {
        candidate: Candidate {
            name: tree.name.clone(),
            engine: tree.engine.to_owned(),
            pid: tree.pid,
            memory: Reading::absent("not looked at"),
        },
        preferred: tree.preferred.clone(),
        tunables,
    };
    Order {
        backend: Backend::User,
        instances: trees.iter().map(chosen).collect(),
        period: Duration::from_millis(100),
        run: format!("affinity-{}", std::process::id()),
    }
}
