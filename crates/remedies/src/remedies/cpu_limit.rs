//! `cpu-limit`: a CPU limit that what the database wants fits into.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, told};
use crate::systemd::{self, Setting};
use untax_core::Database;
use untax_core::database::CpuLimit;
use untax_core::host::CgroupLayout;
use untax_core::plan::{Effect, Step, Target, Task};

pub const REMEDY: Remedy = Remedy {
    id: "cpu-limit",
    summary: "the CPU limit of a database's control group",
    answers: &["cpu-limit"],
    plan,
};

/// Room above what was wanted on average: demand comes in bursts within a period.
const ROOM: f64 = 1.5;

fn plan(case: &Case) -> Draft {
    let mut draft = Draft::default();
    for (database, finding) in &case.findings {
        let Some(database) = database else { continue };
        let Some(limit) = tightest(database) else { continue };
        let lost = finding.tax.as_ref().map_or(0.5, |tax| tax.share).clamp(0.0, 0.95);
        let cpus = cpus(case, limit, lost);
        let wanted = match cpus {
            Some(cpus) => format!("{cpus:.1} CPUs"),
            None => "no limit".to_owned(),
        };
        let summary = format!("CPU limit of {}: {:.2} CPUs -> {wanted}", limit.cgroup, limit.cpus);
        let layout = case.snapshot.host.cgroup.value();
        match layout.filter(|_| database.pod.is_none()).and_then(|layout| file(layout, limit)) {
            Some((file, v2)) => {
                draft.steps.push(Step {
                    id: format!("cpu-limit-{}", database.pid),
                    remedy: REMEDY.id.to_owned(),
                    summary,
                    databases: vec![database.id.clone()],
                    target: Target::Value { file },
                    from: Some(value(Some(limit.cpus), limit, v2)),
                    to: Some(value(cpus, limit, v2)),
                    refresh: Vec::new(),
                    effect: Effect::Now,
                });
                let percent = |cpus: f64| format!("{:.0}%", cpus * 100.0);
                let value = cpus.map(percent).unwrap_or_default();
                let setting = Setting { cgroup: &limit.cgroup, name: "CPUQuota", value };
                draft.steps.extend(systemd::step(database, REMEDY.id, &setting));
            }
            None => draft.tasks.push(Task {
                remedy: REMEDY.id.to_owned(),
                summary: format!(
                    "{}: resources.limits.cpu of its container: {wanted}",
                    told(database)
                ),
                databases: vec![database.id.clone()],
                file: None,
            }),
        }
    }
    draft
}

fn tightest(database: &Database) -> Option<&CpuLimit> {
    let limits = database.cgroup.value()?.cpu.value()?;
    limits.iter().min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// The CPUs that it should have: what it used of the limit, and what it was held back for; `None`
/// when that is all that the machine has.
fn cpus(case: &Case, limit: &CpuLimit, lost: f64) -> Option<f64> {
    let wanted = limit.cpus / (1.0 - lost) * ROOM;
    let all = f64::from(case.snapshot.host.cpu.value()?.logical);
    let wanted = (wanted * 2.0).ceil() / 2.0;
    (wanted < all).then_some(wanted)
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
