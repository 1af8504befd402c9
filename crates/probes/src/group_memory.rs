//! Which control groups took memory in a window, and whose limits were in the way.

use std::collections::HashMap;
use untax_core::host::HostFacts;
use untax_core::pressure::GroupMemory;
use untax_core::{Bytes, Reading, Seconds, Snapshot};
use untax_host::{Host, cgroup};

/// The memory of all control groups of a host.
pub(crate) fn read_groups(host: &Host, facts: &HostFacts) -> Reading<Vec<GroupMemory>> {
    let page = facts.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    facts.cgroup.as_ref().and_then(|layout| cgroup::memory_of_all(host, layout, page.0))
}

/// What the groups took between two snapshots and how often their limits were in the way, those
/// that took most first. Of a group that is new all counts; one that shrank took nothing.
pub fn group_growth(start: &Snapshot, end: &Snapshot) -> Reading<Vec<GroupMemory>> {
    start.groups.as_ref().and_then(|before| {
        let before: HashMap<&str, &GroupMemory> =
            before.iter().map(|group| (group.cgroup.as_str(), group)).collect();
        end.groups.as_ref().map(|after| {
            let grown = after.iter().map(|g| growth(before.get(g.cgroup.as_str()).copied(), g));
            let mut grown: Vec<GroupMemory> =
                grown.filter(|group| group.at_limit > 0 || group.taken_pages > 0).collect();
            grown.sort_by_key(|group| std::cmp::Reverse((group.taken_pages, group.at_limit)));
            grown
        })
    })
}

fn growth(before: Option<&GroupMemory>, after: &GroupMemory) -> GroupMemory {
    let counted =
        |read: fn(&GroupMemory) -> u64| read(after).saturating_sub(before.map_or(0, read));
    let stalled_before = before.and_then(|group| group.stalled_s.value()).map_or(0.0, |s| s.0);
    GroupMemory {
        cgroup: after.cgroup.clone(),
        at_limit: counted(|group| group.at_limit),
        taken_pages: (counted(|group| group.taken_pages) as f64 * after.pages_each) as u64,
        pages_each: 1.0,
        read_again_pages: after.read_again_pages.clone().map(|pages| {
            let before = before.and_then(|group| group.read_again_pages.value());
            pages.saturating_sub(before.copied().unwrap_or_default())
        }),
        stalled_s: after.stalled_s.clone().map(|s| Seconds((s.0 - stalled_before).max(0.0))),
    }
}
