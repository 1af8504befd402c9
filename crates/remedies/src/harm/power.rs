//! What keeps CPUs awake or fast is for the databases' own CPUs, never looser than somebody asked for, and
//! never more than what the kernel's documentation names.

use crate::own_cpus;
use std::collections::BTreeSet;
use untax_core::Snapshot;
use untax_core::host::cpus;
use untax_core::idle::HALT_POLL_NS;
use untax_core::plan::{Plan, Step, Target};

/// The number that a value of the kernel is.
fn number(value: Option<&String>) -> Option<u64> {
    value?.trim().parse().ok()
}

const CPUS: &str = "/sys/devices/system/cpu/";

/// Everything harmful of that kind in a plan, in words.
pub fn harms(plan: &Plan, snapshot: &Snapshot) -> Vec<String> {
    let harms = plan.steps.iter().flat_map(|step| {
        let Target::Value { file } = &step.target else { return service(step) };
        let name = file.rsplit('/').next().unwrap_or_default();
        [foreign(step, file, snapshot), value(step, name)].into_iter().flatten().collect()
    });
    harms.collect()
}

/// Only a unit that untax made is started.
fn service(step: &Step) -> Vec<String> {
    let Target::Service { unit } = &step.target else { return Vec::new() };
    let is_own = unit.starts_with("untax-");
    (!is_own).then(|| format!("{}: starts {unit}, a unit of others", step.id)).into_iter().collect()
}

/// A CPU that the databases of a step may not use.
fn foreign(step: &Step, file: &str, snapshot: &Snapshot) -> Option<String> {
    let of = changed(file, snapshot)?;
    let databases = own_cpus::named(snapshot, &step.databases);
    let own = own_cpus::pinned(&snapshot.host, databases)?;
    own.is_disjoint(&of)
        .then(|| format!("{}: changes CPUs that no database of it may use", step.id))
}

/// The CPUs that a file of sysfs is about.
fn changed(file: &str, snapshot: &Snapshot) -> Option<BTreeSet<u32>> {
    let below = file.strip_prefix(CPUS)?;
    if let Some(policy) = below.strip_prefix("cpufreq/") {
        let name = policy.split('/').next()?;
        let policies = &snapshot.host.cpufreq.value()?.policies;
        let policy = policies.iter().find(|policy| policy.name == name)?;
        return Some(cpus(&policy.cpus).collect());
    }
    let cpu = below.strip_prefix("cpu")?.split('/').next()?.parse().ok()?;
    Some([cpu].into())
}

/// A value that goes the wrong way, or too far.
fn value(step: &Step, name: &str) -> Option<String> {
    let (from, to) = (number(step.from.as_ref()), number(step.to.as_ref()));
    let is_harmful = match name {
        "guest_halt_poll_ns" => {
            to.is_none_or(|to| to > HALT_POLL_NS || from.is_none_or(|f| to < f))
        }
        // `n/a` is the strictest limit, `0` is none.
        "pm_qos_resume_latency_us" => {
            let from = step.from.as_deref();
            let is_stricter = match (from, step.to.as_deref()) {
                (Some("0"), Some("n/a")) => true,
                (Some("0"), _) => to.is_some_and(|to| to > 0),
                (Some("n/a"), _) => false,
                (_, Some("n/a")) => true,
                _ => number(step.from.as_ref()).zip(to).is_some_and(|(f, to)| 0 < to && to < f),
            };
            !is_stricter
        }
        "scaling_max_freq" => from.zip(to).is_none_or(|(from, to)| to < from),
        _ => false,
    };
    is_harmful.then(|| format!("{}: {name} gets a value that harms", step.id))
}
