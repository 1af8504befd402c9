//! What a shortage of memory costs a database.

use crate::model::accounting::{Demand, others};
use crate::model::cpus;
use crate::model::disk_charges::Charged;
use crate::model::disk_requests::{devices_of, disk_stall};
use crate::model::reclaim::{lock_stall, reclaim_stall};
use crate::model::stall::Stall;
use untax_core::activity::Doing;
use untax_core::io::{Direction, Role};
use untax_core::window::{Other, Pair};
use untax_core::{Interval, Reading, Window};

/// Time spent in reclaim, reading again what a limit had evicted, on a CPU and waiting for disks, and
/// waiting for threads that reclaim with a lock held, a file's or the database's own.
pub fn shortage_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    let charged = Charged::of(window, pair).into_value();
    let waiting = disk_stall(window, pair).into_value().flatten();
    let evicted = waiting.zip(charged).map(|(waiting, c)| waiting.share.times(c.evicted));
    let queued = lock_stall(window, pair).into_value().flatten().map(|queued| queued.share);
    let more = || evicted.into_iter().chain(queued);
    let read = charged.map(|charged| {
        let all =
            reread_share(pair, charged.again).plus(completing_share(window, pair, charged.again));
        // Where reading was not sampled it may be any part already, with this in it.
        all.clamp(0.0, charged.again.high)
    });
    reclaim_stall(window, pair).and_then(|stall| {
        let Some(stall) = stall.map(|stall| more().fold(stall, Stall::plus_share)) else {
            return Reading::Present(None);
        };
        let workers_s = charged.and_then(|charged| workers_s(window, pair, charged.again));
        let stall = match workers_s {
            Some(taken_s) => stall.with_worker_time(taken_s),
            None => stall,
        };
        match read {
            Some(read) => stall.with_cpu_share(read).map(Some),
            None => Reading::Present(Some(stall)),
        }
    })
}

/// The part of the time on CPU that reads again what a limit had evicted, which is `again` of what is
/// read. Where too little was sampled to tell what reading takes, it may be any part.
pub fn reread_share(pair: &Pair, again: Interval) -> Interval {
    let reading = pair.activity.value().and_then(|activity| activity.share_reading());
    reading.unwrap_or(Interval::new(0.0, 0.0, 1.0)).times(again)
}

/// So large a part of its time on CPU at most threads are interrupted as requests are done: `perf` saw 9
/// in 100 samples of a MariaDB that read all pages again.
const MOST_COMPLETING: f64 = 0.1;

/// The part of the time on CPU that its threads were interrupted as requests were done for what was moved
/// again. Where that was not sampled, or too little was, it may be none or as much as was seen anywhere.
fn completing_share(window: &Window, pair: &Pair, again: Interval) -> Interval {
    let completing = pair.activity.value().and_then(|activity| activity.share_completing());
    let completing = completing.unwrap_or(Interval::new(0.0, 0.0, MOST_COMPLETING));
    repeated_part(window, pair, again).map_or(Interval::exact(0.0), |moved| completing.times(moved))
}

/// What the kernel's workers took of the CPUs to read again what had been evicted, and to write what was
/// to be.
fn workers_s(window: &Window, pair: &Pair, again: Interval) -> Option<Interval> {
    let taken_s = window.kernel_workers_s.map_or_else(
        || Interval::new(0.0, 0.0, unattributed_s(window, pair)),
        // Wherever they are: no more than their part is on the database's CPUs.
        |taken_s| Interval::exact(taken_s.0 * cpus::own_part(window, pair)),
    );
    Some(repeated_part(window, pair, again)?.times(taken_s))
}

/// The part of what the database's devices moved that is for a limit: what was read again, which is
/// `again` of what was read, and written before. A page that was changed is written before it goes, so of
/// the data written as much may be for that as was read again. None where nothing was.
fn repeated_part(window: &Window, pair: &Pair, again: Interval) -> Option<Interval> {
    let io = window.io.value()?;
    let devices = devices_of(io, &pair.end.id);
    let flows = || {
        let all = io.flows.value().into_iter().flatten();
        all.filter(|flow| devices.contains(&flow.device.as_str()))
    };
    let all: f64 = flows().map(|flow| flow.bytes.0 as f64).sum();
    let data = |direction| -> f64 {
        let own = flows().filter(|flow| flow.database.as_ref() == Some(&pair.end.id));
        let of = own.filter(|flow| (flow.role, flow.direction) == (Role::Data, direction));
        of.map(|flow| flow.bytes.0 as f64).sum()
    };
    let (read, written) = (again.scale(data(Direction::Read)), data(Direction::Write));
    let with_writes = read.map(|read| read + read.min(written));
    let moved = Interval::new(read.low, with_writes.mid, with_writes.high);
    (moved.high > 0.0).then(|| moved.scale(1.0 / all))
}

/// What neither the database nor another process that was seen took of the CPUs: where workers of the
/// kernel are not seen, it may be theirs.
fn unattributed_s(window: &Window, pair: &Pair) -> f64 {
    let here_s = |other: &Other| other.cpu_s.0 * cpus::overlap_part(window, pair, other);
    let others_s: f64 = others(window, pair).map(here_s).sum();
    let demand = Demand::of(window, pair).into_value();
    let own_s = pair.activity.value().map(|a| a.doing(&[Doing::OnCpu, Doing::ReclaimOnCpu]).0);
    demand.map_or(0.0, |demand| {
        (demand.busy_s - own_s.unwrap_or(demand.on_cpu_s) - others_s).max(0.0)
    })
}
