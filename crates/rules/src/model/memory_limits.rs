//! Limits of memory that a database meets, and the neighbours that fill them.

use untax_core::pressure::GroupMemory;
use untax_core::window::Pair;
use untax_core::{Bytes, Reading, Window};

/// How many bytes a database read again soon after they had been evicted, when the limit of its
/// group or of one above was met; without one its data are simply larger than memory, and this is
/// none of them.
pub fn reread_bytes(window: &Window, pair: &Pair) -> Reading<f64> {
    window.groups.as_ref().and_then(|groups| {
        let Some(own) = own_group(pair).filter(|own| nearest_met_limit(groups, own).is_some())
        else {
            return Reading::Present(0.0);
        };
        let page = window.end.host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
        let mine = groups.iter().filter(|g| g.cgroup == own || is_below(&g.cgroup, own));
        read_again_pages(mine).map(|pages| pages * page.0 as f64)
    })
}

/// How many pages these groups read again soon after they had been evicted; a gap where one does not count.
fn read_again_pages<'a>(mut groups: impl Iterator<Item = &'a GroupMemory>) -> Reading<f64> {
    groups
        .try_fold(0.0, |sum, group| match group.read_again_pages.as_ref() {
            Reading::Present(pages) => Ok(sum + *pages as f64),
            gap => Err(gap.map(|_| 0.0)),
        })
        .map_or_else(|gap| gap, Reading::Present)
}

/// The nearest group whose limit was in a database's way; none where it was the machine that was short.
pub fn limiting_group<'a>(window: &'a Window, pair: &Pair) -> Reading<Option<&'a str>> {
    let groups = pair.end.cgroup.as_ref().and_then(|_| window.groups.as_ref());
    groups.map(|groups| nearest_met_limit(groups, own_group(pair)?))
}

/// The nearest group whose limit was in the way.
pub fn nearest_met_limit<'a>(groups: &'a [GroupMemory], own: &str) -> Option<&'a str> {
    let met = |path: &str| groups.iter().find(|group| group.cgroup == path && group.at_limit > 0);
    lineage(own).find_map(met).map(|group| group.cgroup.as_str())
}

/// The groups that took memory under the limit that the database hit.
pub struct Neighbours<'a> {
    /// The groups, those that took most first.
    pub groups: Vec<&'a GroupMemory>,
    /// The group whose limit was in the way; the machine's memory when there is none.
    pub limited: Option<&'a str>,
    /// What of all that was taken they took.
    pub part: f64,
}

/// The neighbours that made a database reclaim; none where its own limit was in the way. A gap where it is not
/// known what the database read again: what was evicted for others it did not take anew.
pub fn neighbours<'a>(window: &'a Window, pair: &Pair) -> Reading<Option<Neighbours<'a>>> {
    let (Some(groups), Some(own)) = (window.groups.value(), own_group(pair)) else {
        return Reading::Present(None);
    };
    let limited = nearest_met_limit(groups, own);
    if limited == Some(own) || (limited.is_none() && !machine_stalled(window)) {
        return Reading::Present(None);
    }
    let scope = limited.unwrap_or_default();
    let shares = |group: &&GroupMemory| is_below(&group.cgroup, scope);
    let (mine, others): (Vec<&GroupMemory>, Vec<&GroupMemory>) = groups
        .iter()
        .filter(shares)
        .partition(|group| group.cgroup == own || is_below(&group.cgroup, own));
    // What processes of a group above it took is nobody's: it may be the database's.
    let others = others.into_iter().filter(|group| !is_below(own, &group.cgroup));
    let mut others: Vec<&GroupMemory> = others.filter(|group| group.taken_pages > 0).collect();
    others.sort_by_key(|group| std::cmp::Reverse(group.taken_pages));
    let pages = |groups: &[&GroupMemory]| -> f64 {
        groups.iter().map(|group| group.taken_pages as f64).sum()
    };
    let (taken, mine_taken) = (pages(&others), pages(&mine));
    if taken <= 0.0 {
        return Reading::Present(None);
    }
    read_again_pages(mine.into_iter()).map(|again| {
        // A page that others take evicts one at most, and what is read again for that was not taken anew.
        let mine = (mine_taken - again.min(taken)).max(0.0);
        Some(Neighbours { groups: others, limited, part: taken / (taken + mine) })
    })
}

/// The group that the database's memory counts in; none for the root, which shares with all.
pub fn own_group<'a>(pair: &Pair<'a>) -> Option<&'a str> {
    pair.end.cgroup.value()?.memory_path()
}

/// A group and those above it, nearest first, the root left out.
fn lineage(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        path.rfind('/').filter(|end| *end > 0).map(|end| &path[..end])
    })
}

/// Whether a group is below another one.
pub fn is_below(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

fn machine_stalled(window: &Window) -> bool {
    let stalls = |snapshot: &untax_core::Snapshot| {
        snapshot.host.vm_counts.value()?.allocation_stalls.value().copied()
    };
    stalls(&window.end).zip(stalls(&window.start)).is_some_and(|(end, start)| end > start)
}
