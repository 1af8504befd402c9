//! What memory that is short costs a database, and who makes it so: what the memory rules share.

use crate::model::accounting::{Demand, others};
use crate::model::cpus;
use crate::model::disk::{self, Charged};
use crate::model::stall::{Stall, WORTH};
use untax_core::activity::{Doing, Part, Spent};
use untax_core::io::{Direction, Role};
use untax_core::pressure::GroupMemory;
use untax_core::window::{Other, Pair};
use untax_core::{Bytes, Interval, Reading, Window};

/// Time spent in reclaim, reading again what a limit had evicted, on a CPU and waiting for disks, and
/// waiting for threads that reclaim with a lock held, a file's or the database's own.
pub fn shortage_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    let charged = Charged::of(window, pair).into_value();
    let waiting = disk::disk_stall(window, pair).into_value().flatten();
    let evicted = waiting.zip(charged).map(|(waiting, c)| waiting.share.times(c.evicted));
    let files = file_stall(window, pair).into_value().flatten();
    let locked = files.map(|files| files.share.scale(reclaiming_part(window, pair)));
    let queued = lock_stall(window, pair).into_value().flatten().map(|queued| queued.share);
    let more = || evicted.into_iter().chain(locked).chain(queued);
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
    let devices = disk::devices_of(io, &pair.end.id);
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
    demand.map_or(0.0, |demand| (demand.busy_s - demand.on_cpu_s - others_s).max(0.0))
}

/// Freeing memory on a CPU, with its part of waiting for one, and asleep.
fn reclaim_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
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
fn lock_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
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
        mine.fold(Reading::Present(0.0), |sum, group| {
            let pages = group.read_again_pages.as_ref();
            sum.and_then(|sum| pages.map(|pages| sum + *pages as f64 * page.0 as f64))
        })
    })
}

/// The nearest group whose limit was in a database's way; none where it was the machine that was short.
pub fn limiting_group<'a>(window: &'a Window, pair: &Pair) -> Reading<Option<&'a str>> {
    let groups = pair.end.cgroup.as_ref().and_then(|_| window.groups.as_ref());
    groups.map(|groups| nearest_met_limit(groups, own_group(pair)?))
}

/// The nearest group whose limit was in the way.
fn nearest_met_limit<'a>(groups: &'a [GroupMemory], own: &str) -> Option<&'a str> {
    let met = |path: &str| groups.iter().find(|group| group.cgroup == path && group.at_limit > 0);
    lineage(own).find_map(met).map(|group| group.cgroup.as_str())
}

/// Who took memory below the limit that the database met.
pub struct Neighbours<'a> {
    /// The groups, those that took most first.
    pub groups: Vec<&'a GroupMemory>,
    /// The group whose limit was in the way; the machine's memory when there is none.
    pub limited: Option<&'a str>,
    /// What of all that was taken they took.
    pub part: f64,
}

/// The neighbours that made a database reclaim; none where its own limit was in the way.
pub fn neighbours<'a>(window: &'a Window, pair: &Pair) -> Option<Neighbours<'a>> {
    let groups = window.groups.value()?;
    let own = own_group(pair)?;
    let limited = nearest_met_limit(groups, own);
    if limited == Some(own) || (limited.is_none() && !machine_stalled(window)) {
        return None;
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
    let pages = |groups: &[&GroupMemory], count: fn(&GroupMemory) -> u64| {
        groups.iter().map(|group| count(group) as f64).sum::<f64>()
    };
    let taken = pages(&others, |group| group.taken_pages);
    let again = pages(&mine, |group| group.read_again_pages.value().copied().unwrap_or(0));
    // A page that others take evicts one at most, and what is read again for that was not taken anew.
    let mine = (pages(&mine, |group| group.taken_pages) - again.min(taken)).max(0.0);
    (taken > 0.0).then(|| Neighbours { groups: others, limited, part: taken / (taken + mine) })
}

/// The group that the database's memory counts in; none for the root, which shares with all.
fn own_group<'a>(pair: &Pair<'a>) -> Option<&'a str> {
    let paths = &pair.end.cgroup.value()?.paths;
    let own = paths.get("memory").or_else(|| paths.get("unified"))?;
    (own != "/").then_some(own)
}

/// A group and those above it, nearest first, the root left out.
fn lineage(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        path.rfind('/').filter(|end| *end > 0).map(|end| &path[..end])
    })
}

fn is_below(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

fn machine_stalled(window: &Window) -> bool {
    let stalls = |snapshot: &untax_core::Snapshot| {
        snapshot.host.vm_counts.value()?.allocation_stalls.value().copied()
    };
    stalls(&window.end).zip(stalls(&window.start)).is_some_and(|(end, start)| end > start)
}
