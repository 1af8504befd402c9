//! `memory-limit`: a memory limit that what cannot be freed fits into.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use crate::systemd::{self, Setting};
use untax_core::database::{Cgroup, MemoryGroup};
use untax_core::host::CgroupLayout;
use untax_core::plan::{Effect, Step, Target, Task};
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: "memory-limit",
    summary: "the memory limits of a database's control group and of those above it",
    answers: &["memory-limit"],
    plan,
};

/// Room above what is in use: page cache and bursts of work memory.
const ROOM: f64 = 1.5;

/// The share of the machine's memory that one group may have.
const MOST: f64 = 0.9;

fn plan(case: &Case) -> Draft {
    let mut draft = Draft::default();
    for database in case.concerned() {
        let tightest = database.cgroup.value().and_then(Cgroup::tightest_memory);
        let limited = tightest.and_then(|group| Some((group, group.limit()?)));
        let Some((group, limit)) = limited else { continue };
        let Some(to) = wanted(case, group, limit).filter(|to| *to > limit) else { continue };
        let layout = case.snapshot.host.cgroup.value().filter(|_| database.pod.is_none());
        match layout.and_then(|layout| steps(layout, database, to)) {
            Some(steps) => draft.steps.extend(steps),
            None => draft.tasks.push(Task {
                remedy: REMEDY.id.to_owned(),
                summary: format!(
                    "{}: resources.limits.memory of its container: {to}",
                    told(database)
                ),
                databases: vec![database.id.clone()],
                file: None,
            }),
        }
    }
    draft
}

/// The steps that raise every limit in the way, the lowest first: one that is raised alone leaves the
/// database below the next.
fn steps(layout: &CgroupLayout, database: &Database, to: Bytes) -> Option<Vec<Step>> {
    let mut low = low(database, to);
    low.sort_by_key(|low| low.limit);
    let each = (0..).zip(&low).map(|(n, low)| {
        let ending = if n == 0 { String::new() } else { format!("-{n}") };
        let step = Step {
            id: format!("memory-limit-{}{ending}", database.pid),
            remedy: REMEDY.id.to_owned(),
            summary: format!("memory limit of {}: {} -> {to}", low.group.cgroup, low.limit),
            databases: vec![database.id.clone()],
            target: Target::Value { file: file(layout, low)? },
            from: Some(low.limit.0.to_string()),
            to: Some(to.0.to_string()),
            refresh: Vec::new(),
            effect: Effect::Now,
        };
        let name = if low.is_high { "MemoryHigh" } else { "MemoryMax" };
        let setting = Setting { cgroup: &low.group.cgroup, name, value: to.0.to_string() };
        let unit = systemd::step(std::slice::from_ref(&database.id), REMEDY.id, &setting);
        let unit = unit.map(|unit| Step { id: format!("{}{ending}", unit.id), ..unit });
        Some(std::iter::once(step).chain(unit))
    });
    let steps: Option<Vec<_>> = each.collect();
    Some(steps?.into_iter().flatten().collect())
}

/// A limit that is lower than a database needs.
struct Low<'a> {
    group: &'a MemoryGroup,
    is_high: bool,
    limit: Bytes,
}

fn low(database: &Database, to: Bytes) -> Vec<Low<'_>> {
    let groups = database.cgroup.value().and_then(|cgroup| cgroup.memory.value());
    let both = groups.into_iter().flatten().flat_map(|group| {
        let limits = [(true, &group.high_bytes), (false, &group.max_bytes)];
        limits.into_iter().filter_map(move |(is_high, limit)| {
            Some(Low { group, is_high, limit: *limit.value()? })
        })
    });
    both.filter(|low| low.limit < to).collect()
}

fn wanted(case: &Case, group: &MemoryGroup, limit: Bytes) -> Option<Bytes> {
    let most = case.snapshot.host.memory.value()?.total_bytes.0 as f64 * MOST;
    let used = group.unreclaimable().unwrap_or(limit).max(limit);
    let mebibytes = (used.0 as f64 * ROOM).min(most) as u64 >> 20;
    Some(Bytes::from_mib(mebibytes))
}

/// The file of a limit.
fn file(layout: &CgroupLayout, low: &Low) -> Option<String> {
    let mount = |controller: &str| {
        let found = layout.mounts.iter().find(|m| m.controllers.iter().any(|c| c == controller));
        found.map(|mount| mount.path.clone())
    };
    let group = &low.group.cgroup;
    if let Some(path) = mount("memory") {
        return Some(format!("{path}{group}/memory.limit_in_bytes"));
    }
    let name = if low.is_high { "memory.high" } else { "memory.max" };
    Some(format!("{}{group}/{name}", mount("unified")?))
}
