//! `cgroup-hugetlb-limit`: limits on huge pages that the database's fit into: those that were found too
//! low, and those in the way of a pool that the plan makes.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use untax_core::database::{Cgroup, HugetlbLimit};
use untax_core::plan::Task;
use untax_core::{Bytes, Database, page_size};

pub const REMEDY: Remedy = Remedy {
    id: "cgroup-hugetlb-limit",
    summary: "the limits on huge pages of a database's control groups or container",
    answers: &["cgroup-hugetlb-limit", "hugepage-pool"],
    plan,
};

/// A person's work: who made the group sets its limits again whenever it likes.
fn plan(case: &Case) -> Draft {
    let found = case.findings.iter().filter_map(|(database, finding)| {
        let is_about = finding.remedy.as_deref() == Some(REMEDY.id);
        Some(task((*database).filter(|_| is_about)?, &finding.fix))
    });
    let mut tasks: Vec<Task> = found.collect();
    if !case.wants_no_pool() {
        // The limits of a pod follow from what it requests: the remedy `kubernetes` says that.
        let databases = case.concerned().filter(|database| database.pod.is_none());
        let page = case.page();
        tasks.extend(databases.flat_map(|database| {
            let low = page.map(|page| too_low(case, database, page)).unwrap_or_default();
            low.into_iter().map(|text| task(database, &text))
        }));
    }
    Draft { tasks, ..Draft::default() }
}

fn task(database: &Database, text: &str) -> Task {
    Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!("{}: {text}", told(database)),
        databases: vec![database.id.clone()],
        file: None,
    }
}

/// What to do about each limit, from the database's group up, that its pages will not fit into.
fn too_low(case: &Case, database: &Database, page: Bytes) -> Vec<String> {
    let asks = case.asks(database, "hugepage-pool");
    let Some(pages) = case.pages(database, page).filter(|_| asks) else { return Vec::new() };
    let need = Bytes(pages.saturating_mul(page.0));
    let say = |(limit, file, max): (&HugetlbLimit, &str, Bytes)| {
        format!(
            "before its restart, hugetlb.{}.{file} of {}: {max} -> {} bytes at least",
            page_size::group_word(page),
            limit.cgroup,
            need.0
        )
    };
    below(database, page, need).into_iter().map(say).collect()
}

/// The limits of a database on pages of a size that are lower than so much.
pub fn below(
    database: &Database,
    page: Bytes,
    need: Bytes,
) -> Vec<(&HugetlbLimit, &'static str, Bytes)> {
    let limits = database.cgroup.value().and_then(|cgroup: &Cgroup| cgroup.hugetlb.value());
    let limits = limits.into_iter().flatten().filter(|limit| limit.size_bytes == page);
    let both = limits.flat_map(|limit| {
        let files = [("max", &limit.max_bytes), ("rsvd.max", &limit.rsvd_max_bytes)];
        files.into_iter().filter_map(move |(file, max)| Some((limit, file, *max.value()?)))
    });
    both.filter(|(.., max)| *max < need).collect()
}
