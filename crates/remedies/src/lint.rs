//! What is to be known before a plan is applied.

use crate::remedy::Draft;
use crate::sizing::POOL_SHARE;
use untax_core::host::HostFacts;
use untax_core::plan::{Step, Target, Warning};
use untax_core::{Bytes, Snapshot, page_size};

pub fn lint(draft: &Draft, snapshot: &Snapshot) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(nobody(snapshot));
    warnings.extend(overcommit(&draft.steps, &snapshot.host));
    warnings.extend(conflicts(&draft.steps));
    warnings.extend(others(&draft.steps, snapshot));
    warnings
}

/// That there was nobody to change anything for.
fn nobody(snapshot: &Snapshot) -> Option<Warning> {
    snapshot.databases.is_empty().then(|| Warning {
        id: "no-database".to_owned(),
        refuses: false,
        text: "no database was there when the check ended; once one runs: untax check".to_owned(),
    })
}

/// New pools that do not fit into what memory is available.
pub fn overcommit(steps: &[Step], host: &HostFacts) -> Option<Warning> {
    let wanted: Bytes = steps.iter().filter_map(more_pool).sum();
    let available = *host.memory.value()?.available_bytes.value()?;
    if wanted == Bytes(0) || wanted.0 as f64 <= available.0 as f64 * POOL_SHARE {
        return None;
    }
    Some(Warning {
        id: "memory-overcommit".to_owned(),
        refuses: true,
        text: format!(
            "the new huge pages take {wanted}, but only {available} are available: make the \
             databases smaller, or choose fewer with --only"
        ),
    })
}

/// By how much a step makes a pool larger.
fn more_pool(step: &Step) -> Option<Bytes> {
    let Target::Pool { directory } = &step.target else { return None };
    let (size, _) = page_size::of_directory(directory)?;
    let pages = |value: &Option<String>| value.as_ref()?.parse::<u64>().ok();
    let more = pages(&step.to)?.saturating_sub(pages(&step.from)?);
    Some(Bytes(more.saturating_mul(size.0)))
}

/// Two steps that set the same thing to different values.
fn conflicts(steps: &[Step]) -> Vec<Warning> {
    let clash = |(at, step): (usize, &Step)| {
        let earlier = steps[..at].iter().find(|other| other.target == step.target)?;
        Some(Warning {
            id: "conflict".to_owned(),
            refuses: true,
            text: format!(
                "{} and {} set the same thing to different values: choose with --only, or plan for one \
                 database, from untax check --pid",
                earlier.id, step.id
            ),
        })
    };
    steps.iter().enumerate().filter_map(clash).collect()
}

/// Steps that change the whole host while databases run on it that they are not for.
fn others(steps: &[Step], snapshot: &Snapshot) -> Vec<Warning> {
    let is_of_host = |step: &&Step| match &step.target {
        Target::Word { .. } | Target::Dirty { .. } | Target::Service { .. } => true,
        Target::Value { file } => {
            file.starts_with("/proc/sys/") || file.starts_with("/sys/module/")
        }
        _ => false,
    };
    let of_host = steps.iter().filter(is_of_host);
    let affects = |step: &Step| {
        let others = snapshot.databases.iter().map(|database| database.id.as_str());
        let others: Vec<&str> =
            others.filter(|id| !step.databases.iter().any(|of| of == id)).collect();
        (!others.is_empty()).then(|| Warning {
            id: "other-databases".to_owned(),
            refuses: false,
            text: format!("{} is for the whole host: {} too", step.summary, others.join(", ")),
        })
    };
    of_host.filter_map(affects).collect()
}
