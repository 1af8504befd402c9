//! The facts that a plan stands on: where one of them is another by now, it is refused.

use std::collections::BTreeMap;
use untax_core::database::Model;
use untax_core::{Bytes, Database, Snapshot};

/// The facts of a snapshot that every plan stands on, by name. What steps change themselves is
/// not among them: each step compares its own value.
pub fn basis(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let host = &snapshot.host;
    let mut basis = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        basis.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("machine", host.machine_id.value().cloned());
    add("kernel", host.kernel.value().map(|kernel| kernel.release.clone()));
    // The kernel gives a little more or less memory from boot to boot.
    add("memory", host.memory.value().map(|m| format!("{} MiB", m.total_bytes.0 >> 26 << 6)));
    add("NUMA nodes", host.numa.value().map(|nodes| nodes.len().to_string()));
    add(
        "page sizes",
        host.page_sizes_bytes
            .value()
            .map(|sizes| sizes.iter().map(Bytes::to_string).collect::<Vec<_>>().join(", ")),
    );
    // A program that is no database has no need that could have changed.
    for database in snapshot.databases.iter().filter(|database| database.model != Model::Unknown) {
        let place = database.data_directory.value().unwrap_or(&database.id);
        let needs = pool_setting(database).or_else(|| {
            let needs = database.huge_pages.as_ref().and_then(|u| u.needed_pages.clone());
            Some(format!("{} huge pages", needs.into_value()?))
        });
        let needs = needs.unwrap_or_else(|| "huge pages not known".to_owned());
        add(&format!("{} at {place}", database.engine), Some(needs));
    }
    basis
}

/// What sizes the memory of an engine that maps and unmaps more beside it while it runs.
fn pool_setting(database: &Database) -> Option<String> {
    let name = database.traits.memory_setting.as_ref()?;
    Some(format!("{name} = {}", database.settings.value()?.values.get(name)?))
}

/// In what a host differs from what a plan stands on, in words; empty when in nothing.
pub fn differences(plan: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    plan.iter()
        .filter_map(|(name, was)| match now.get(name) {
            Some(is) if is == was => None,
            Some(is) => Some(format!("{name} was {was}, now it is {is}")),
            None => Some(format!("{name} was {was}, now it is not there")),
        })
        .collect()
}
