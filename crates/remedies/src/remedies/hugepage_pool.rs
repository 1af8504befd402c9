//! `hugepage-pool`: as many huge pages, now, as the databases need that suffer without.

use crate::case::Case;
use crate::lint::kilobytes;
use crate::remedy::{Draft, Remedy};
use crate::sizing::size_of;
use untax_core::host::Pool;
use untax_core::plan::{Effect, Step, Target};
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: "hugepage-pool",
    summary: "the number of huge pages, now, on each NUMA node",
    answers: &["hugepage-pool"],
    plan,
};

fn plan(case: &Case) -> Draft {
    // A kubelet counts the pool when it starts: the pool of its node changes while the node is
    // drained, as the remedy `kubernetes` has it.
    if case.snapshot.databases.iter().any(|database| database.pod.is_some()) {
        return Draft::default();
    }
    let Some(targets) = targets(case) else { return Draft::default() };
    let page = size_of(&case.sizing.node.advice.page);
    let steps = targets.iter().filter_map(|(pool, to)| step(case, pool, page, *to));
    Draft { steps: steps.filter(can_be_had).collect(), ..Draft::default() }
}

/// The pools of the advised size, on each node or on the host, and how many pages each should
/// have.
pub(super) fn targets<'a>(case: &Case<'a>) -> Option<Vec<(&'a Pool, u64)>> {
    let page = size_of(&case.sizing.node.advice.page);
    let pools = case.snapshot.host.hugepages.value()?;
    let of_size = || pools.iter().filter(|pool| pool.size_bytes == page);
    let whole = of_size().find(|pool| pool.node.is_none())?;
    let (wanted, now) = wanted(case, whole).zip(configured(whole))?;
    let mut nodes: Vec<&Pool> = of_size().filter(|pool| pool.node.is_some()).collect();
    if nodes.is_empty() {
        nodes.push(whole);
    }
    let targets =
        if wanted >= now { grown(&nodes, wanted - now) } else { shrunk(&nodes, now - wanted) };
    nodes.into_iter().zip(targets).map(|(pool, to)| Some((pool, to?))).collect()
}

/// A running kernel hardly ever finds 1 GiB in one piece: those pages come with a boot.
fn can_be_had(step: &Step) -> bool {
    let gigantic = matches!(&step.target, Target::Pool { directory }
        if directory.ends_with(&kilobytes(Bytes::GIB_1)));
    !gigantic || step.effect == Effect::Now
}

/// How many pages the pool should have: those in use, those that databases on small pages would
/// take, and the spare ones, unless those are what a finding is about.
fn wanted(case: &Case, pool: &Pool) -> Option<u64> {
    let free = pool.free.value()?.saturating_sub(*pool.reserved.value()?);
    let used = pool.total.value()?.saturating_sub(free);
    let missing: u64 = case.concerned().filter_map(|database| missing(case, database)).sum();
    let idle = case.findings.iter().any(|(_, finding)| finding.rule == "hugepages-idle");
    let spare = if idle { 0 } else { free };
    Some(used + missing.max(spare))
}

/// What a database would take that sits on base pages now.
fn missing(case: &Case, database: &Database) -> Option<u64> {
    let size = case.sizing.databases.iter().find(|size| size.id == database.id)?;
    let pages = *size.huge_pages.value()?.get(&case.sizing.node.advice.page)?;
    let page = *database.memory.page_size_bytes.value()?;
    (page < Bytes::MIB_2).then_some(pages)
}

fn configured(pool: &Pool) -> Option<u64> {
    Some(pool.total.value()?.saturating_sub(*pool.surplus.value()?))
}

/// The pages of each node when so many more are spread over all of them.
fn grown(nodes: &[&Pool], more: u64) -> Vec<Option<u64>> {
    let count = nodes.len() as u64;
    let share = |(at, pool): (u64, &&Pool)| {
        Some(configured(pool)? + more / count + u64::from(at < more % count))
    };
    (0..).zip(nodes).map(share).collect()
}

/// The pages of each node when so many free ones are given back.
fn shrunk(nodes: &[&Pool], mut fewer: u64) -> Vec<Option<u64>> {
    let rest = |pool: &&Pool| {
        let (now, free) = (configured(pool)?, *pool.free.value()?);
        let gone = free.min(fewer).min(now);
        fewer -= gone;
        Some(now - gone)
    };
    nodes.iter().map(rest).collect()
}

fn step(case: &Case, pool: &Pool, page: Bytes, to: u64) -> Option<Step> {
    let from = configured(pool)?;
    if from == to {
        return None;
    }
    let directory = match pool.node {
        Some(node) => format!("/sys/devices/system/node/node{node}/hugepages/{}", kilobytes(page)),
        None => format!("/sys/kernel/mm/hugepages/{}", kilobytes(page)),
    };
    let name = &case.sizing.node.advice.page;
    let node = pool.node.map(|node| format!("-node{node}")).unwrap_or_default();
    let place = pool.node.map(|node| format!(" on node {node}")).unwrap_or_default();
    Some(Step {
        id: format!("pool-{name}{node}"),
        remedy: REMEDY.id.to_owned(),
        summary: format!("pool of {page} pages{place}: {from} -> {to}"),
        databases: case.databases(),
        target: Target::Pool { directory },
        from: Some(from.to_string()),
        to: Some(to.to_string()),
        refresh: Vec::new(),
        effect: if to > from { Effect::Restart } else { Effect::Now },
    })
}
