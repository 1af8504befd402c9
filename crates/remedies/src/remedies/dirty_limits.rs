//! `dirty-limits`: writing back begins early enough that nobody is held back for it, and no later
//! than a burst is long.

use super::{Draft, Remedy};
use crate::planner::Case;
use untax_core::plan::{Effect, Step, Target};
use untax_core::{Bytes, Reading};

pub const REMEDY: Remedy = Remedy {
    id: "dirty-limits",
    summary: "how many changed pages may wait for the disk, now and after a boot",
    answers: &["dirty-limits"],
    plan,
};

/// When writing begins in the background: a second's worth of a slow disk. PostgreSQL's
/// documentation of `checkpoint_flush_after` and kernel.org's vm sysctls give the reasons.
const BACKGROUND: Bytes = Bytes::from_mib(128);

/// When writers are held back: far enough above for bursts.
const FOREGROUND: Bytes = Bytes::from_mib(1024);

/// A foreground limit is at most this part of the available memory: the kernel's own default, `dirty_ratio` = 20.
const MOST: u64 = 5;

const DROP_IN: &str = "/etc/sysctl.d/90-untax-dirty.conf";

fn plan(case: &Case) -> Draft {
    let memory = case.snapshot.host.memory.value().and_then(|m| m.available_bytes.value());
    let most = memory.map_or(FOREGROUND, |available| Bytes(available.0 / MOST));
    let foreground = FOREGROUND.min(most.max(BACKGROUND + BACKGROUND));
    let wanted = [("dirty_background", BACKGROUND), ("dirty", foreground)];
    let mut steps: Vec<Step> =
        wanted.iter().filter_map(|(name, bytes)| now(case, name, *bytes)).collect();
    if steps.is_empty() {
        return Draft::default();
    }
    let lines = wanted.map(|(name, bytes)| format!("vm.{name}_bytes = {}\n", bytes.0)).concat();
    steps.push(Step {
        id: "dirty-boot".to_owned(),
        remedy: REMEDY.id.to_owned(),
        summary: format!("{DROP_IN}: the same after every boot"),
        databases: case.databases(),
        target: Target::File { file: DROP_IN.to_owned() },
        from: None,
        to: Some(format!("# Made by untax.\n{lines}")),
        refresh: Vec::new(),
        effect: Effect::Reboot,
    });
    Draft { steps, ..Draft::default() }
}

/// Whether a limit held a database back: then one that is too low is raised. Where the disk was the
/// cause, lower is better.
fn held_back(case: &Case) -> bool {
    case.findings.iter().any(|(_, found)| found.rule == "dirty-burst" && found.tax.is_some())
}

/// A step, unless the limit is good already.
fn now(case: &Case, name: &str, bytes: Bytes) -> Option<Step> {
    let from = limit(case, name)?;
    let good = |now: Bytes| now == bytes || now < bytes && !held_back(case);
    if in_bytes(case, &from).is_some_and(good) {
        return None;
    }
    Some(Step {
        id: name.replace('_', "-"),
        remedy: REMEDY.id.to_owned(),
        summary: format!("vm.{name}: {from} -> {bytes}"),
        databases: case.databases(),
        target: Target::Dirty { what: format!("/proc/sys/vm/{name}") },
        from: Some(from),
        to: Some(bytes.0.to_string()),
        refresh: Vec::new(),
        effect: Effect::Now,
    })
}

/// A limit in bytes, also where it is a share of what memory can be had; `None` when that is not
/// known. Source: kernel.org, admin-guide/sysctl/vm, `dirty_ratio`.
fn in_bytes(case: &Case, limit: &str) -> Option<Bytes> {
    let Some(percent) = limit.strip_suffix('%') else { return limit.parse().ok().map(Bytes) };
    let available = *case.snapshot.host.memory.value()?.available_bytes.value()?;
    Some(Bytes((available.0 as f64 * percent.parse::<f64>().ok()? / 100.0) as u64))
}

/// The limit as it is, in the form of [`Target::Dirty`].
fn limit(case: &Case, name: &str) -> Option<String> {
    let Reading::Present(sysctls) = &case.snapshot.host.sysctls else { return None };
    match sysctls.get(&format!("vm.{name}_bytes"))?.as_str() {
        "0" => Some(format!("{}%", sysctls.get(&format!("vm.{name}_ratio"))?)),
        bytes => Some(bytes.to_owned()),
    }
}
