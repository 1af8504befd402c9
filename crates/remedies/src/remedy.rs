//! What a remedy is, and what it adds to a plan.

use crate::case::Case;
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
pub(crate) fn file_name(database: &Database, what: &str) -> String {
    format!("{}-{}-{what}", database.engine, database.pid)
}

/// A database as people know it.
pub(crate) fn told(database: &Database) -> String {
    let place = database.data_directory.value().map(|at| format!(" at {at}")).unwrap_or_default();
    format!("{} (pid {}){place}", database.product, database.pid)
}
