//! `cgroup-hugetlb-limit`: a limit on huge pages that the database's fit into.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use untax_core::plan::Task;

pub const REMEDY: Remedy = Remedy {
    id: "cgroup-hugetlb-limit",
    summary: "the limit on huge pages of a database's control group or container",
    answers: &["cgroup-hugetlb-limit"],
    plan,
};

/// A person's work: who made the group sets its limits again whenever it likes.
fn plan(case: &Case) -> Draft {
    let task = |(database, finding): &(Option<&untax_core::Database>, &untax_core::Finding)| {
        let database = (*database)?;
        Some(Task {
            remedy: REMEDY.id.to_owned(),
            summary: format!("{}: {}", told(database), finding.fix),
            databases: vec![database.id.clone()],
            file: None,
        })
    };
    Draft { tasks: case.findings.iter().filter_map(task).collect(), ..Draft::default() }
}
