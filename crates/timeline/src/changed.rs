//! The facts that changed about the time of a change.

use crate::history::Track;
use crate::stretches::Times;
use std::ops::RangeInclusive;
use untax_core::timeline::FactChange;

/// Facts count that changed so many windows before a change is seen, or after.
pub(crate) const NEAR: usize = 2;

/// The facts of a track that differ before and after these windows. What became known because the thing itself began
/// to be seen is no change.
pub(crate) fn facts(track: &Track, times: &Times, near: &RangeInclusive<usize>) -> Vec<FactChange> {
    let Some(before_at) = near.start().checked_sub(1) else { return Vec::new() };
    let mut changed = Vec::new();
    for (id, all) in track.facts() {
        let at = all.iter().map(|(at, _)| *at).find(|at| near.contains(at));
        let (before, after) = (track.fact(id, before_at), track.fact(id, *near.end()));
        let Some(at) = at.filter(|_| before != after && before.is_some()) else { continue };
        changed.push(FactChange {
            id: id.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            at: Some(times.end(at)),
        });
    }
    changed
}

/// The windows about a change from one window to another.
pub(crate) fn near(first: usize, last: usize) -> RangeInclusive<usize> {
    first.saturating_sub(NEAR)..=last + NEAR
}
