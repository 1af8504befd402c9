//! What no remedy has a step or a task for is left to a person, in the words of the finding.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, gap, host, postgres, snapshot};
use untax_core::Reading::Present;
use untax_core::database::{Cgroup, CpuLimit};
use untax_core::{Bytes, Database, Seconds, Severity};
use untax_remedies::Wish;

#[test]
fn what_no_remedy_answers_is_a_task_in_its_own_words() {
    let snapshot = snapshot(host("debian", "12", gap(), ""), vec![postgres(Bytes::from_mib(512))]);
    let mut check = check(&snapshot, "cpu-contended", "a-remedy-to-come");
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

#[test]
fn a_remedy_that_has_nothing_for_one_of_two_databases_leaves_it_to_a_person() {
    let of = |id: &str| Database { id: id.to_owned(), ..postgres(Bytes::from_mib(512)) };
    let limit = CpuLimit {
        cgroup: "/db".to_owned(),
        cpus: 1.5,
        period_s: Seconds(0.1),
        periods: gap(),
        throttled_periods: gap(),
    };
    let cgroup = Cgroup {
        cpu: Present(vec![limit]),
        ..Cgroup::unknown([("unified".to_owned(), "/db".to_owned())].into(), "not read")
    };
    let limited = Database { cgroup: Present(cgroup), ..of("postgres:1") };
    let databases = vec![limited, of("postgres:2")];
    let snapshot = snapshot(host("debian", "12", gap(), ""), databases);
    let check = check(&snapshot, "cpu-throttled", "cpu-limit");
    let plan = untax_remedies::plan("a".to_owned(), &check, &snapshot, &Wish::default()).unwrap();
    let tasks: Vec<_> = plan.tasks.iter().map(|t| (t.remedy.as_str(), &t.databases[..])).collect();
    let ids = ["postgres:1", "postgres:2"].map(|id| vec![id.to_owned()]);
    assert_eq!(tasks, [("cpu-limit", &ids[0][..]), ("by-hand", &ids[1][..])]);
}

#[test]
fn a_check_whose_database_ended_has_nothing_to_plan_for_and_says_so() {
    let nobody = snapshot(host("debian", "12", gap(), ""), Vec::new());
    let check = check(&nobody, "small-pages", "hugepage-pool");
    let plan = untax_remedies::plan("a".to_owned(), &check, &nobody, &Wish::default()).unwrap();
    assert!(plan.steps.is_empty() && plan.tasks.is_empty());
    let warnings: Vec<_> = plan.warnings.iter().map(|w| (w.id.as_str(), w.refuses)).collect();
    assert_eq!(warnings, [("no-database", false)]);
}
