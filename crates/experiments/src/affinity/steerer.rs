//! Steering beside a trial.

use std::time::Duration;
use untax_core::Reading;
use untax_core::cpus::Cpus;
use untax_steer::policy::{Rule, Tunables};
use untax_steer::resolve::Candidate;
use untax_steer::{Backend, Chosen, Order};

/// A server with its clients, and the CPUs that they prefer.
pub(super) struct Tree {
    pub(super) name: String,
    /// The id of its engine, by which its work is counted.
    pub(super) engine: &'static str,
    pub(super) pid: u32,
    pub(super) clients: Option<u32>,
    pub(super) preferred: Cpus,
}

/// These instances by a rule, and all else as `untax steer` has it.
pub(super) fn order(trees: &[Tree], rule: Rule) -> Order {
    let tunables = Tunables { rule, ..Tunables::default() };
    let chosen = |tree: &Tree| Chosen {
        candidate: Candidate {
            name: tree.name.clone(),
            engine: tree.engine.to_owned(),
            pid: tree.pid,
            memory: Reading::absent("not looked at"),
        },
        along: tree.clients.into_iter().collect(),
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
