//! `dirty-limits`: writing back begins early enough that nobody is held back for it, and nobody is
//! held back who only writes in bursts.

use crate::case::Case;
use crate::remedy::{Draft, Remedy};
use untax_core::plan::{Effect, Step, Target};
use untax_core::{Bytes, Reading};

pub const REMEDY: Remedy = Remedy {
    id: "dirty-limits",
    summary: "how many changed pages may wait for the disk, now and after a boot",
    answers: &["dirty-limits", ROOM],
    plan,
};

/// What a finding asks for when a limit is too low for the database's own bursts; otherwise the disk
/// is the cause, and limits are too high.
const ROOM: &str = "dirty-room";

/// When writing begins in the background: a second's worth of a slow disk. PostgreSQL's
/// documentation of `checkpoint_flush_after` and kernel.org's vm sysctls give the reasons.
const BACKGROUND: Bytes = Bytes::from_mib(128);

/// When writers are held back: far enough above for bursts.
const FOREGROUND: Bytes = Bytes::from_mib(1024);

/// Writers are held back at this part of the available memory at the latest: the kernel's own
/// default (`dirty_ratio` = 20).
const PART: u64 = 5;

const DROP_IN: &str = "/etc/sysctl.d/90-untax-dirty.conf";

fn plan(case: &Case) -> Draft {
    let Some(available) = available(case) else { return Draft::default() };
    let foreground = FOREGROUND.min(rounded(Bytes(available.0 / PART)));
    let background = BACKGROUND.min(Bytes(foreground.0 / 2));
    let wanted = [("dirty_background", background), ("dirty", foreground)];
    let mut steps: Vec<Step> =
        wanted.iter().filter_map(|(name, bytes)| now(case, name, *bytes, available)).collect();
    if steps.is_empty() {
        return Draft::default();
    }
    let changed = wanted.iter().filter(|(name, _)| steps.iter().any(|s| s.id == id(name)));
    let lines: String =
        changed.map(|(name, bytes)| format!("vm.{name}_bytes = {}\n", bytes.0)).collect();
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

/// What memory can be had.
fn available(case: &Case) -> Option<Bytes> {
    case.snapshot.host.memory.value()?.available_bytes.value().copied()
}

/// Down to a power of two: what is available is another number in each moment.
fn rounded(bytes: Bytes) -> Bytes {
    Bytes(1 << bytes.0.max(1).ilog2())
}

/// The id of the step for a limit.
fn id(name: &str) -> String {
    name.replace('_', "-")
}

/// A step, unless the limit is good already: low enough, or where a database needs room, high enough.
fn now(case: &Case, name: &str, bytes: Bytes, available: Bytes) -> Option<Step> {
    let from = limit(case, name)?;
    let room = case.findings.iter().any(|(_, found)| found.remedy.as_deref() == Some(ROOM));
    let good = |now: Bytes| if room { now >= bytes } else { now <= bytes };
    if in_bytes(&from, available).is_some_and(good) {
        return None;
    }
    Some(Step {
        id: id(name),
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

/// A limit in bytes, also where it is a share of what memory can be had. Source: kernel.org,
/// admin-guide/sysctl/vm, `dirty_ratio`.
fn in_bytes(limit: &str, available: Bytes) -> Option<Bytes> {
    let Some(percent) = limit.strip_suffix('%') else { return limit.parse().ok().map(Bytes) };
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
