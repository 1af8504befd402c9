//! Waiting of threads that free memory, and of those behind them.

use crate::model::stall::Stall;
use untax_core::activity::{self, Cause, Doing, Part, Spent};
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

/// Waiting for locks, the database's own or a file's, while threads that hold them free memory.
pub fn lock_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    let model = pair.end.model;
    Stall::of(window, pair, |spent| spent.behind.is_some() && spent.goes_to(Cause::Memory, model))
}

fn counts(spent: &Spent, pair: &Pair, doing: Doing) -> bool {
    let model = pair.end.model;
    spent.doing == doing && spent.part(model) == Part::Reclaim && !spent.in_background(model)
}

/// Waiting inside file calls, and behind threads that do.
pub fn file_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    Stall::of(window, pair, |spent| activity::is_in_files(spent, pair.end.model))
}
