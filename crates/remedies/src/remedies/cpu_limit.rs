//! `cpu-limit`: CPU limits that what the database wants fits into: its own, and those of the groups above.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use crate::systemd::{self, Setting};
use untax_core::Database;
use untax_core::database::{CpuLimit, wanted_cpus};
use untax_core::host::CgroupLayout;
use untax_core::plan::{Effect, Step, Target, Task};

pub const REMEDY: Remedy = Remedy {
    id: "cpu-limit",
    summary: "the CPU limits of a database's control group and of those above it",
    answers: &["cpu-limit"],
    plan,
};

/// How many CPUs a database wants of the lowest limit that it is under.
struct Demand<'a> {
    database: &'a Database,
    tightest: &'a CpuLimit,
    cpus: f64,
}

/// A limit that is lower than what the databases below it want.
struct Raise<'a> {
    limit: &'a CpuLimit,
    /// The CPUs that it should be; `None` where that is all that the machine has.
    cpus: Option<f64>,
    databases: Vec<&'a Database>,
}

fn plan(case: &Case) -> Draft {
    let demands = demands(case);
    let mut draft = Draft::default();
    let (pods, groups): (Vec<Demand>, Vec<Demand>) =
        demands.into_iter().partition(|demand| demand.database.pod.is_some());
    draft.tasks.extend(pods.iter().map(|demand| task(demand.database, capped(case, demand.cpus))));
    for raise in raises(case, &groups) {
        let layout = case.snapshot.host.cgroup.value();
        match layout.and_then(|layout| file(layout, raise.limit)) {
            Some((file, v2)) => draft.steps.extend(steps(&raise, file, v2, draft.steps.len())),
            None => draft.tasks.extend(raise.databases.iter().map(|of| task(of, raise.cpus))),
        }
    }
    draft
}

fn demands<'a>(case: &Case<'a>) -> Vec<Demand<'a>> {
    let demand = |(database, finding): &(Option<&'a Database>, &'a untax_core::Finding)| {
        let database = (*database)?;
        let tightest = limits(database).min_by(|a, b| a.cpus.total_cmp(&b.cpus))?;
        let lost = finding.tax.as_ref().map_or(0.5, |tax| tax.share);
        Some(Demand { database, tightest, cpus: wanted_cpus(tightest.cpus, lost) })
    };
    case.findings.iter().filter_map(demand).collect()
}

fn limits(database: &Database) -> impl Iterator<Item = &CpuLimit> {
    let limits = database.cgroup.value().and_then(|cgroup| cgroup.cpu.value());
    limits.into_iter().flatten()
}

/// Every limit on the way to these databases that is lower than what they want, the outermost first: the
/// kernel refuses a limit of version 1 above its parent's, and one of version 2 brings nothing there.
fn raises<'a>(case: &Case, demands: &[Demand<'a>]) -> Vec<Raise<'a>> {
    let mut raises: Vec<Raise> = Vec::new();
    for limit in demands.iter().flat_map(|demand| limits(demand.database)) {
        let is_known = raises.iter().any(|raise| raise.limit.cgroup == limit.cgroup);
        let wanted = wanted_below(demands, &limit.cgroup);
        let cpus = capped(case, wanted);
        if is_known || limit.cpus >= cpus.unwrap_or(f64::INFINITY).min(all_cpus(case)) {
            continue;
        }
        let below = |demand: &&Demand| {
            is_within(&demand.tightest.cgroup, &limit.cgroup)
                || limits(demand.database).any(|one| one.cgroup == limit.cgroup)
        };
        let databases = demands.iter().filter(below).map(|demand| demand.database).collect();
        raises.push(Raise { limit, cpus, databases });
    }
    raises.sort_by_key(|raise| raise.limit.cgroup.trim_end_matches('/').matches('/').count());
    raises
}

/// What the databases that are limited by this group, or by groups below it, want together. Those that
/// share their lowest limit tell of the same demand.
fn wanted_below(demands: &[Demand], group: &str) -> f64 {
    let most = |cgroup: &str| {
        let of = demands.iter().filter(|demand| demand.tightest.cgroup == cgroup);
        of.map(|demand| demand.cpus).fold(0.0, f64::max)
    };
    let mut below: Vec<&str> = demands.iter().map(|d| d.tightest.cgroup.as_str()).collect();
    below.retain(|cgroup| *cgroup != group && is_within(cgroup, group));
    below.sort_unstable();
    below.dedup();
    let outer = |cgroup: &&&str| !below.iter().any(|of| of != *cgroup && is_within(cgroup, of));
    let together: f64 = below.iter().filter(outer).map(|cgroup| most(cgroup)).sum();
    let above = demands.iter().filter(|demand| {
        let through = limits(demand.database).any(|limit| limit.cgroup == group);
        through && !is_within(&demand.tightest.cgroup, group)
    });
    let above = above.map(|demand| demand.cpus).fold(0.0, f64::max);
    together.max(most(group)).max(above)
}

/// Whether a group is another one or below it.
fn is_within(group: &str, other: &str) -> bool {
    let rest = group.strip_prefix(other.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// So many CPUs; `None` where that is all that the machine has.
fn capped(case: &Case, wanted: f64) -> Option<f64> {
    (wanted < all_cpus(case)).then_some(wanted)
}

/// Where it is not known how many there are, there may be any number.
fn all_cpus(case: &Case) -> f64 {
    case.snapshot.host.cpu.value().map_or(f64::INFINITY, |cpu| f64::from(cpu.logical))
}

fn steps(raise: &Raise, file: String, v2: bool, number: usize) -> Vec<Step> {
    let Raise { limit, cpus, databases } = raise;
    let databases: Vec<String> = databases.iter().map(|database| database.id.clone()).collect();
    let summary =
        format!("CPU limit of {}: {:.2} CPUs -> {}", limit.cgroup, limit.cpus, words(*cpus));
    let now = Step {
        id: format!("cpu-limit-{number}"),
        remedy: REMEDY.id.to_owned(),
        summary,
        databases: databases.clone(),
        target: Target::Value { file },
        from: Some(value(Some(limit.cpus), limit, v2)),
        to: Some(value(*cpus, limit, v2)),
        refresh: Vec::new(),
        effect: Effect::Now,
    };
    let value = cpus.map(|cpus| format!("{:.0}%", cpus * 100.0)).unwrap_or_default();
    let setting = Setting { cgroup: &limit.cgroup, name: "CPUQuota", value };
    [now].into_iter().chain(systemd::step(&databases, REMEDY.id, &setting)).collect()
}

fn task(database: &Database, cpus: Option<f64>) -> Task {
    Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "{}: resources.limits.cpu of its container: {}",
            told(database),
            words(cpus)
        ),
        databases: vec![database.id.clone()],
        file: None,
    }
}

fn words(cpus: Option<f64>) -> String {
    cpus.map_or_else(|| "no limit".to_owned(), |cpus| format!("{cpus:.1} CPUs"))
}

/// The file of a limit, and whether it is one of cgroup v2.
fn file(layout: &CgroupLayout, limit: &CpuLimit) -> Option<(String, bool)> {
    let mount = |controller: &str| {
        let found = layout.mounts.iter().find(|m| m.controllers.iter().any(|c| c == controller));
        found.map(|mount| mount.path.clone())
    };
    match mount("cpu") {
        Some(path) => Some((format!("{path}{}/cpu.cfs_quota_us", limit.cgroup), false)),
        None => Some((format!("{}{}/cpu.max", mount("unified")?, limit.cgroup), true)),
    }
}

/// A limit as its file has it.
fn value(cpus: Option<f64>, limit: &CpuLimit, v2: bool) -> String {
    let period_us = (limit.period_s.0 * 1e6).round();
    let quota = cpus.map(|cpus| (cpus * period_us).round());
    match (quota, v2) {
        (Some(quota), true) => format!("{quota} {period_us}"),
        (None, true) => format!("max {period_us}"),
        (Some(quota), false) => format!("{quota}"),
        (None, false) => "-1".to_owned(),
    }
}
