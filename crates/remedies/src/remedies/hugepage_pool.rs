//! `hugepage-pool`: as many huge pages, now, as the databases need that suffer without. A pool is never
//! made smaller: nobody knows all programs that it may be for.

use crate::case::Case;
use crate::pool_plan::{Place, PoolPlan};
use crate::remedy::{Draft, Remedy};
use crate::sizing::is_found_running;
use untax_core::plan::{Effect, Step, Target, Task};
use untax_core::{Bytes, page_size};

pub const REMEDY: Remedy = Remedy {
    id: "hugepage-pool",
    summary: "the number of huge pages, now, on each NUMA node that has memory",
    answers: &["hugepage-pool"],
    plan,
};

fn plan(case: &Case) -> Draft {
    let tasks = idle(case).into_iter().collect();
    let steps = if is_changed_here(case) { steps(case) } else { Vec::new() };
    Draft { steps, tasks, ..Draft::default() }
}

/// A kubelet counts the pool when it starts: the pool of its node changes while the node is drained, as
/// the remedy `kubernetes` has it.
fn is_changed_here(case: &Case) -> bool {
    !case.wants_no_pool() && case.snapshot.databases.iter().all(|database| database.pod.is_none())
}

fn steps(case: &Case) -> Vec<Step> {
    let PoolPlan::Wanted(places) = PoolPlan::of(case) else { return Vec::new() };
    let Some(page) = case.page().filter(|page| is_found_running(case.snapshot, *page)) else {
        return Vec::new();
    };
    places.iter().filter(|place| place.to > place.now).map(|p| step(case, p, page)).collect()
}

fn step(case: &Case, place: &Place, page: Bytes) -> Step {
    let Place { pool, now, to } = place;
    let name = page_size::directory(page);
    let directory = match pool.node {
        Some(node) => format!("/sys/devices/system/node/node{node}/hugepages/{name}"),
        None => format!("/sys/kernel/mm/hugepages/{name}"),
    };
    let node = pool.node.map(|node| format!("-node{node}")).unwrap_or_default();
    let on = pool.node.map(|node| format!(" on node {node}")).unwrap_or_default();
    Step {
        id: format!("pool-{}{node}", page_size::token(page)),
        remedy: REMEDY.id.to_owned(),
        summary: format!("pool of {page} pages{on}: {now} -> {to}"),
        databases: case.databases(),
        target: Target::Pool { directory },
        from: Some(now.to_string()),
        to: Some(to.to_string()),
        refresh: Vec::new(),
        effect: Effect::Restart,
    }
}

/// What to do about pages that are idle: a person's work, who knows what they were reserved for.
fn idle(case: &Case) -> Option<Task> {
    let (_, finding) = case
        .findings
        .iter()
        .find(|(of, finding)| of.is_none() && finding.rule == "hugepages-idle")?;
    Some(Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "{}: keep them until you know the program that they were reserved for; no plan of untax \
             makes a pool smaller (untax explain hugepages-idle)",
            finding.summary
        ),
        databases: Vec::new(),
        file: None,
    })
}
