//! `memory-limit`: a memory limit that what cannot be freed fits into.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use crate::systemd::{self, Setting};
use untax_core::Bytes;
use untax_core::database::{Cgroup, MemoryGroup};
use untax_core::host::CgroupLayout;
use untax_core::plan::{Effect, Step, Target, Task};

pub const REMEDY: Remedy = Remedy {
    id: "memory-limit",
    summary: "the memory limit of a database's control group",
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
        let summary = format!("memory limit of {}: {limit} -> {to}", group.cgroup);
        let layout = case.snapshot.host.cgroup.value();
        let file = layout.filter(|_| database.pod.is_none()).and_then(|l| file(l, group));
        match file {
            Some(file) => {
                let name = if file.ends_with("memory.high") { "MemoryHigh" } else { "MemoryMax" };
                draft.steps.push(Step {
                    id: format!("memory-limit-{}", database.pid),
                    remedy: REMEDY.id.to_owned(),
                    summary,
                    databases: vec![database.id.clone()],
                    target: Target::Value { file },
                    from: Some(limit.0.to_string()),
                    to: Some(to.0.to_string()),
                    refresh: Vec::new(),
                    effect: Effect::Now,
                });
                let setting = Setting { cgroup: &group.cgroup, name, value: to.0.to_string() };
                draft.steps.extend(systemd::step(
                    std::slice::from_ref(&database.id),
                    REMEDY.id,
                    &setting,
                ));
            }
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

fn wanted(case: &Case, group: &MemoryGroup, limit: Bytes) -> Option<Bytes> {
    let most = case.snapshot.host.memory.value()?.total_bytes.0 as f64 * MOST;
    let used = group.unreclaimable().unwrap_or(limit).max(limit);
    let mebibytes = (used.0 as f64 * ROOM).min(most) as u64 >> 20;
    Some(Bytes::from_mib(mebibytes))
}

/// The file of the limit that is the lowest.
fn file(layout: &CgroupLayout, group: &MemoryGroup) -> Option<String> {
    let mount = |controller: &str| {
        let found = layout.mounts.iter().find(|m| m.controllers.iter().any(|c| c == controller));
        found.map(|mount| mount.path.clone())
    };
    if let Some(path) = mount("memory") {
        return Some(format!("{path}{}/memory.limit_in_bytes", group.cgroup));
    }
    let high = group.high_bytes.value().copied() == group.limit();
    let name = if high { "memory.high" } else { "memory.max" };
    Some(format!("{}{}/{name}", mount("unified")?, group.cgroup))
}
