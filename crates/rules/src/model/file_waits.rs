//! Waiting for a filesystem at work, its journal and the locks of its files, and hanging in one.

use crate::model::disk_requests;
use crate::model::reclaim;
use untax_core::io::{Direction, Place, Role};
use untax_core::window::Pair;
use untax_core::{Interval, Io, Reading, Window};

/// What a database waits for inside file calls, those left out that wait for threads that free memory. As
/// expected it is nothing where a disk of another machine may be waited for.
pub struct FileWaits {
    /// The share of active time in waits as any filesystem at work has them.
    pub working: Interval,
    /// The share in hangs, and behind them, as expected.
    pub hung: f64,
    /// How long a write of its own is waited for in the filesystem, beside the request for it, s.
    pub commit_s: f64,
}

impl FileWaits {
    /// These waits, or why they are not known.
    pub fn of(window: &Window, io: &Io, pair: &Pair) -> Reading<Self> {
        let id = pair.end.id.as_str();
        let files = reclaim::file_stall(window, pair);
        pair.activity.as_ref().and_then(|activity| {
            files.map(|files| {
                let none = Interval::exact(0.0);
                let files = files.map_or(none, |files| files.share);
                let hung = activity.share_hung(pair.end.model).unwrap_or(none);
                let near = if is_far(io, id) { 0.0 } else { 1.0 };
                let working = (files.mid - hung.mid).max(0.0) * near;
                let window_s = activity.window_s.0.max(f64::MIN_POSITIVE);
                // Several may wait for the same commit.
                let waited_s = working * activity.active(pair.end.model).0.min(window_s);
                Self {
                    working: Interval::new(0.0, working, (files.high - hung.low).max(0.0)),
                    hung: hung.mid.min(files.mid) * near,
                    commit_s: match writes(io, id) {
                        0 => 0.0,
                        count => waited_s * io.window_s.0 / window_s / count as f64,
                    },
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

/// How many writes of a database's somebody waited for.
fn writes(io: &Io, database: &str) -> u64 {
    let writes = disk_requests::awaited_requests(io, database)
        .filter(|flow| flow.direction == Direction::Write);
    writes.map(|flow| flow.requests).sum()
}
