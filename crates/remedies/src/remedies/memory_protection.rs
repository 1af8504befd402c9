//! `memory-protection`: memory of the database that others cannot make the kernel reclaim. A protection
//! holds as far as every group above grants it, and what these protect now is not read: it is handed over.
//! Sources: kernel.org, admin-guide/cgroup-v2, `memory.low`; systemd.resource-control(5), `MemoryLow=`;
//! kubernetes.io, Quality of Service for Memory Resources.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, file_name, told};
use crate::systemd;
use untax_core::plan::Task;
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: "memory-protection",
    summary: "memory of a database that neighbours cannot take from it",
    answers: &["memory-protection"],
    plan,
};

/// Protections of all databases together leave at least half of the memory to everybody else.
const MOST_PART: u64 = 2;

fn plan(case: &Case) -> Draft {
    let count = case.concerned().count().max(1) as u64;
    let tasks = case.concerned().map(|database| task(case, database, count));
    Draft { tasks: tasks.collect(), ..Draft::default() }
}

fn task(case: &Case, database: &Database, count: u64) -> Task {
    let low = protected(case, database, count);
    let amount = low.map_or_else(|| "its working set".to_owned(), |low| low.to_string());
    let group = database.cgroup.value().and_then(|cgroup| cgroup.paths.get("unified"));
    let units = group.map(|group| units(group)).unwrap_or_default();
    let (how, file) = match (&database.pod, low) {
        (Some(_), _) => {
            (format!("request {amount} of memory for its container, with memory QoS"), None)
        }
        (None, Some(low)) if !units.is_empty() => {
            let name = file_name(database, "memory-low.txt");
            let all = units.iter().map(|(unit, section)| {
                format!("# systemctl edit {unit}\n[{section}]\nMemoryLow={}M\n", low.0 >> 20)
            });
            let text = format!(
                "# Made by untax. Each unit above must grant it too: where one protects other\n\
                 # memory already, add this to what it has.\n{}",
                all.collect::<String>()
            );
            (format!("protect {amount} of its memory from neighbours"), Some((name, text)))
        }
        (None, _) => (
            format!("memory.low of its group, and of all groups above: {amount} (cgroup v2)"),
            None,
        ),
    };
    Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!("{}: {how}", told(database)),
        databases: vec![database.id.clone()],
        file,
    }
}

/// What it has in use, without pages of a pool, which nobody can take.
fn protected(case: &Case, database: &Database, count: u64) -> Option<Bytes> {
    let total = case.snapshot.host.memory.value()?.total_bytes;
    let base = case.snapshot.host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    let on_base = database.memory.page_size_bytes.value().is_some_and(|page| *page <= base);
    let data = database.memory.shared_bytes.value().copied().filter(|_| on_base);
    let used = *database.memory.resident_bytes.value()?.max(&data.unwrap_or_default());
    Some(used.min(Bytes(total.0 / MOST_PART / count)))
}

/// The units of a group and of those above it, uppermost first.
fn units(group: &str) -> Vec<(&str, &'static str)> {
    let ends = group.match_indices('/').map(|(at, _)| at).skip(1).chain([group.len()]);
    ends.filter_map(|end| systemd::unit(&group[..end])).collect()
}
