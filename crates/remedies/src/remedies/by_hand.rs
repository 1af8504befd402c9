//! What was found and no remedy has anything for: a person's task, in the words of the finding.

use crate::case::Case;
use crate::remedy::{Draft, told};
use untax_core::plan::Task;
use untax_core::{Database, Finding, Severity};

/// What these tasks have for the id of a remedy.
const BY_HAND: &str = "by-hand";

/// A task for each finding that is worth one.
pub fn plan(case: &Case) -> Draft {
    let worth = case.findings.iter().filter(|(_, finding)| finding.severity > Severity::Info);
    let tasks = worth.map(|(database, finding)| task(*database, finding));
    Draft { tasks: tasks.collect(), ..Draft::default() }
}

fn task(database: Option<&Database>, finding: &Finding) -> Task {
    let whom = database.map(|database| format!("{}: ", told(database))).unwrap_or_default();
    let (rule, fix) = (&finding.rule, &finding.fix);
    Task {
        remedy: BY_HAND.to_owned(),
        summary: format!("{whom}{fix} ({rule}; untax explain {rule})"),
        databases: database.map(|database| database.id.clone()).into_iter().collect(),
        file: None,
    }
}
