//! `io-limit`: a limit on what the neighbour that floods a disk may write to it. Never on a group that a
//! database is in: what a limit holds back while it has a lock holds up all who wait for that.

use crate::case::Case;
use crate::remedy::{Draft, Remedy};
use crate::systemd::{self, Setting};
use untax_core::evidence::Value;
use untax_core::plan::{Effect, Step, Target, Task, Warning};
use untax_core::{Bytes, Database, Finding};

pub const REMEDY: Remedy = Remedy {
    id: "io-limit",
    summary: "how much the neighbour that floods a disk may write to it each second",
    answers: &["io-limit", "dirty-limits"],
    plan,
};

/// The part of what is written to the disk now that the neighbour may write: a disk that is asked for half of
/// what it does keeps a new request waiting for no more than about one other, by the waiting time of a
/// single queue (utilisation over one less utilisation).
const PART: f64 = 0.5;

/// The neighbour that floods, as a finding tells of it.
struct Flood<'a> {
    group: &'a str,
    device: &'a str,
    device_name: &'a str,
    bytes_per_s: f64,
}

impl<'a> Flood<'a> {
    fn of(finding: &'a Finding) -> Option<Self> {
        let evidence = |id: &str| finding.evidence.iter().find(|evidence| evidence.id == id);
        let text = |id: &str| match &evidence(id)?.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        let bytes_per_s = match evidence("flood-rate")?.value {
            Value::Number(rate) => rate,
            Value::Count(rate) => rate as f64,
            _ => return None,
        };
        Some(Self {
            group: text("flood-group")?,
            device: text("flood-device")?,
            device_name: evidence("flood-device")?.of.as_deref()?,
            bytes_per_s,
        })
    }

    /// In whole MiB, one at least.
    fn limit(&self) -> Bytes {
        Bytes::from_mib(((self.bytes_per_s * PART) as u64 >> 20).max(1))
    }
}

fn plan(case: &Case) -> Draft {
    let mut draft = Draft::default();
    for (database, finding) in &case.findings {
        let Some((database, flood)) = (*database).zip(Flood::of(finding)) else { continue };
        if case.snapshot.databases.iter().any(|one| shares_a_group(one, flood.group)) {
            continue;
        }
        match file(case, &flood) {
            Some(file) => {
                draft.steps.extend(steps(database, &flood, file));
                if draft.warnings.is_empty() {
                    draft.warnings.push(may_hold_the_journal(&flood));
                }
            }
            None => draft.tasks.push(by_hand(database, &flood)),
        }
    }
    draft
}

/// Whether a database is in this group, in one above it, or in one below it.
fn shares_a_group(database: &Database, group: &str) -> bool {
    let within = |path: &str, other: &str| {
        let rest = path.strip_prefix(other.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Where its groups are not known, any may be one of them.
    database.cgroup.value().is_none_or(|cgroup| {
        cgroup.paths.values().any(|own| within(own, group) || (own != "/" && within(group, own)))
    })
}

/// The group's file; version 1 limits no writes that pass through memory.
fn file(case: &Case, flood: &Flood) -> Option<String> {
    let layout = case.snapshot.host.cgroup.value()?;
    let has = |name: &str| {
        layout.mounts.iter().find(|m| m.controllers.iter().any(|controller| controller == name))
    };
    let mount = has("unified").filter(|_| has("blkio").is_none())?;
    Some(format!("{}{}/io.max", mount.path, flood.group))
}

fn steps(database: &Database, flood: &Flood, file: String) -> Vec<Step> {
    let Flood { group, device, device_name, .. } = flood;
    let limit = flood.limit();
    let databases = [database.id.clone()];
    let now = Step {
        id: format!("io-limit-{device}{}", group.replace('/', "-")),
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "{group} may write {limit} a second to {device_name}: no limit -> {limit}/s"
        ),
        databases: databases.to_vec(),
        target: Target::DeviceLimit { file, device: (*device).to_owned() },
        from: None,
        to: Some(format!("rbps=max wbps={} riops=max wiops=max", limit.0)),
        refresh: Vec::new(),
        effect: Effect::Now,
    };
    let value = format!("/dev/{device_name} {}", limit.0);
    let setting = Setting { cgroup: group, name: "IOWriteBandwidthMax", value };
    [now].into_iter().chain(systemd::step(&databases, REMEDY.id, &setting)).collect()
}

fn may_hold_the_journal(flood: &Flood) -> Warning {
    Warning {
        id: "io-limit-journal".to_owned(),
        refuses: false,
        text: format!(
            "where {} writes to the filesystem of a database, its commits may wait for what the limit holds \
             back: check again for io-hang, and undo this if it is found",
            flood.group
        ),
    }
}

fn by_hand(database: &Database, flood: &Flood) -> Task {
    Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "hold {} back at its source, to {} a second or less: cgroup version 1 limits no writes that \
             pass through memory",
            flood.group,
            flood.limit()
        ),
        databases: vec![database.id.clone()],
        file: None,
    }
}
