//! Waiting for a filesystem at work: its journal and the locks of its files, but no hangs.

use crate::{disk, memory};
use untax_core::io::{Direction, Place, Role};
use untax_core::window::Pair;
use untax_core::{Interval, Io, Reading, Window};

/// What a database waits for inside file calls, those left out that wait for threads that reclaim.
pub struct FileWaits {
    /// The share of active time in waits as any filesystem at work has them.
    pub working: Interval,
    /// The share in hangs, and behind them.
    pub hung: f64,
    /// The part (0..1) that is known to be for disks of this machine.
    pub near: f64,
    /// How long a write of the log is waited for in the filesystem, beside its own requests.
    pub commit_s: f64,
}

impl FileWaits {
    /// These waits, or why they are not known.
    pub fn of(window: &Window, io: &Io, pair: &Pair) -> Reading<Self> {
        let files = memory::files(window, pair);
        pair.activity.as_ref().and_then(|activity| {
            files.map(|files| {
                let none = Interval::exact(0.0);
                let files = files.map_or(none, |files| files.share);
                let hung = activity.share_hung(pair.end.model).unwrap_or(none);
                let kept = 1.0 - memory::reclaiming(window, pair);
                let most = (files.high - hung.low).max(0.0) * kept;
                let working = ((files.mid - hung.mid).max(0.0) * kept).min(most);
                let window_s = activity.window_s.0.max(f64::MIN_POSITIVE);
                // Several may wait for the same commit.
                let waited_s = working * activity.active(pair.end.model).0.min(window_s);
                Self {
                    working: Interval::new(0.0, working, most),
                    hung: hung.mid.min(files.mid) * kept,
                    near: if is_far(io, &pair.end.id) { 0.0 } else { 1.0 },
                    commit_s: waited_s * io.window_s.0 / window_s / writes(io, &pair.end.id),
                }
            })
        })
    }
}

/// Whether a disk of another machine may be what it waits for.
fn is_far(io: &Io, database: &str) -> bool {
    let far = |place: &Place| place.filesystem.value().is_some_and(|f| f.network.is_some());
    io.places_of(database).any(|place| place.role != Role::Temp && far(place))
}

/// How many writes of a database's somebody waited for; at least one.
fn writes(io: &Io, database: &str) -> f64 {
    let writes = disk::waited_for(io, database).filter(|flow| flow.direction == Direction::Write);
    writes.map(|flow| flow.requests).sum::<u64>().max(1) as f64
}
