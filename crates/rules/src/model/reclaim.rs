//! Waiting of threads that free memory, and of those behind them.

use crate::model::memory_limits::limiting_group;
use crate::model::stall::{Stall, WORTH};
use untax_core::activity::{Doing, Part, Spent};
use untax_core::window::Pair;
use untax_core::{Reading, Window};

/// Freeing memory on a CPU, with its part of waiting for one, and asleep.
pub fn reclaim_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    let model = pair.end.model;
    let asleep = Stall::of(window, pair, |spent| counts(spent, pair, Doing::ReclaimStalled));
    let on_cpu = pair.activity.value().and_then(|activity| {
        let share = activity.share(model, |spent| counts(spent, pair, Doing::ReclaimOnCpu))?;
        Some(share.scale(activity.active(model).0))
    });
    asleep.and_then(|stall| match stall.zip(on_cpu) {
        Some((stall, on_cpu_s)) => stall.with_cpu_time(on_cpu_s).map(Some),
        None => Reading::Present(None),
    })
}

/// Waiting for locks that threads hold meanwhile.
pub fn lock_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    Stall::of(window, pair, |spent| counts(spent, pair, Doing::FutexReclaim))
}

fn counts(spent: &Spent, pair: &Pair, doing: Doing) -> bool {
    let model = pair.end.model;
    spent.doing == doing && spent.part(model) == Part::Reclaim && !spent.in_background(model)
}

/// Waiting inside file calls, and behind threads that do.
pub fn file_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    Stall::of(window, pair, |spent| spent.held_by(Doing::Filesystem, pair.end.model))
}

/// The part (0..1) of waits inside file calls that is for threads that reclaim, where a limit of
/// memory is met: a thread that writes has the file's lock, and while it reclaims all others may
/// wait for it, but for no longer.
pub fn reclaiming_part(window: &Window, pair: &Pair) -> f64 {
    let part = || {
        limiting_group(window, pair).into_value()??;
        let reclaim = reclaim_stall(window, pair).into_value().flatten()?.share.mid;
        let files = file_stall(window, pair).into_value().flatten()?.share.mid;
        let others = (pair.activity.value()?.awake() - 1.0).max(0.0);
        (reclaim >= WORTH && files > 0.0).then(|| (reclaim * others / files).min(1.0))
    };
    part().unwrap_or(0.0)
}
