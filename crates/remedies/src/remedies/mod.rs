//! One file per remedy. A remedy is pure: it says which steps and tasks would remove a cause.

mod boot_loader;
pub mod by_hand;
mod cpu_limit;
mod database_config;
mod dirty_limits;
mod hugepage_boot;
mod hugepage_pool;
mod hugetlb_limit;
mod kubernetes;
mod kubernetes_node;
mod kubernetes_runtime;
mod memory_limit;
mod pooler;
mod redis_io_threads;
pub mod thp;

use crate::planner::Case;
use untax_core::Database;
use untax_core::plan::{Step, Task, Warning};

/// A kind of change.
pub struct Remedy {
    /// Its id, and the name of its file here.
    pub id: &'static str,
    /// One line: what it changes.
    pub summary: &'static str,
    /// The `remedy` of the findings that it answers.
    pub answers: &'static [&'static str],
    /// What it would do about the findings of a case.
    pub plan: fn(&Case) -> Draft,
}

/// All remedies, in the order in which their steps are done.
pub static REMEDIES: &[Remedy] = &[
    hugetlb_limit::REMEDY,
    hugepage_pool::REMEDY,
    hugepage_boot::REMEDY,
    thp::REMEDY,
    dirty_limits::REMEDY,
    cpu_limit::REMEDY,
    memory_limit::REMEDY,
    pooler::REMEDY,
    redis_io_threads::REMEDY,
    database_config::REMEDY,
    kubernetes::REMEDY,
    kubernetes_runtime::REMEDY,
];

/// What a remedy adds to a plan.
#[derive(Debug, Default)]
pub struct Draft {
    /// For the executor.
    pub steps: Vec<Step>,
    /// For a person.
    pub tasks: Vec<Task>,
    /// To be known before.
    pub warnings: Vec<Warning>,
}

impl Draft {
    /// Whether it has anything for a database; for the host when `None`.
    pub fn is_for(&self, database: Option<&Database>) -> bool {
        let mut steps = self.steps.iter().map(|step| &step.databases);
        let mut tasks = self.tasks.iter().map(|task| &task.databases);
        let concerns = |ids: &Vec<String>| database.is_none_or(|one| ids.contains(&one.id));
        steps.any(concerns) || tasks.any(concerns) || !self.warnings.is_empty()
    }

    /// Adds all of another one.
    pub fn add(&mut self, other: Self) {
        self.steps.extend(other.steps);
        self.tasks.extend(other.tasks);
        self.warnings.extend(other.warnings);
    }
}

/// A name for files: the engine and what tells several of one kind apart.
fn file_name(database: &Database, what: &str) -> String {
    format!("{}-{}-{what}", database.engine, database.pid)
}

/// A database as people know it.
fn told(database: &Database) -> String {
    let place = database.data_directory.value().map(|at| format!(" at {at}")).unwrap_or_default();
    format!("{} (pid {}){place}", database.product, database.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_list_is_complete_and_says_everything() {
        let ids: BTreeSet<&str> = REMEDIES.iter().map(|remedy| remedy.id).collect();
        assert_eq!(ids.len(), REMEDIES.len(), "an id is used twice");
        for remedy in REMEDIES {
            assert!(!remedy.summary.is_empty() && !remedy.answers.is_empty(), "{}", remedy.id);
        }
    }
}
