//! What no remedy has a step or a task for is left to a person, in the words of the finding.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, gap, host, postgres, snapshot};
use untax_core::{Bytes, Severity};
use untax_remedies::Wish;

#[test]
fn what_no_remedy_answers_is_a_task_in_its_own_words() {
    let snapshot = snapshot(host("debian", "12", gap(), ""), vec![postgres(Bytes::from_mib(512))]);
    let mut check = check(&snapshot, "cpu-contended", "cpu-weight");
    let tasks = |check: &untax_core::Check| {
        let plan = untax_remedies::plan("a".to_owned(), check, &snapshot, &Wish::default());
        plan.unwrap().tasks
    };
    let task = tasks(&check).remove(0);
    assert!(task.summary.contains("a fix (cpu-contended; untax explain cpu-contended)"));
    assert_eq!(task.databases, [snapshot.databases[0].id.clone()]);
    check.databases[0].findings[0].severity = Severity::Info;
    assert!(tasks(&check).is_empty(), "it is worth knowing and no more");
}
