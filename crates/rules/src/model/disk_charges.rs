//! Which cause a database's waiting for its disks is charged to: what the disk rules share.
//!
//! Every wait is charged once. What spilled temporary files and full page images wait for would
//! end with them. Of the rest, a disk as anyone has it would take a part too; only what is above
//! that is the platform's, and that is the storage's, the neighbours' or the device's own. A disk that
//! works for others too takes longer than one that is alone: what they add is the neighbours' from there on.

use crate::model::disk_limit;
use crate::model::disk_neighbours::occupied_part;
use crate::model::disk_requests::{
    STRANGERS, awaited_requests, device_time_s, disk_stall, is_known, reads, remote_part,
    transfer_part, waited_s,
};
use crate::model::file_waits::FileWaits;
use crate::model::full_page_images;
use crate::model::memory_limits::reread_bytes;
use crate::model::stall::{Stall, WORTH};
use untax_core::database::Limited;
use untax_core::io::Role;
use untax_core::window::Pair;
use untax_core::{Interval, Io, Reading, Window};

/// What an ordinary flash disk of the machine's own takes for a request, its queue included:
/// data-centre flash is specified at 0.02 to 0.2 ms for a small read or write, and
/// takes up to 0.5 ms under load. Waits within it are the price of durable or cold data anywhere.
pub const ORDINARY_S: f64 = 0.000_5;

/// What it takes while nobody else uses it: such disks read in 0.077 and write in 0.018 ms (data sheets,
/// see `disk-slow`). What others in its queue add to that is theirs.
pub const ALONE_S: f64 = 0.000_1;

/// Parts (0..1) of the time that a database's threads waited for block devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Charged {
    /// For what queries spilled to temporary files (MySQL and its kin).
    pub temporary: Interval,
    /// For full page images in the log (PostgreSQL).
    pub images: Interval,
    /// For pages of files that a memory limit had evicted too early.
    pub evicted: Interval,
    /// The part of what was read that these pages are.
    pub again: Interval,
    /// For storage behind a network being slower than a disk of the machine's own.
    pub remote: Interval,
    /// For others that kept the device busy.
    pub neighbours: Interval,
    /// For the device itself being slower than an ordinary one.
    pub device: Interval,
    /// Time that threads waited over the requests that they waited for, s. Not the requests' own
    /// time: a flush follows many of them, which the block layer makes on nobody's behalf, and a
    /// group with an I/O limit waits before there is a request.
    pub request_s: f64,
}

/// The waiting for block devices that is charged to one of these, when it is known and worth a
/// finding.
pub fn charged_stall(
    window: &Window,
    pair: &Pair,
    part: fn(&Charged) -> Interval,
) -> Option<Stall> {
    let waiting = disk_stall(window, pair).into_value().flatten();
    let (mut stall, charged) = waiting.zip(Charged::of(window, pair).into_value())?;
    stall.share = stall.share.times(part(&charged));
    Some(stall).filter(|stall| stall.share.mid >= WORTH)
}

/// Why it is not known what the waiting for block devices is charged to; `None` where it is.
pub fn why_unknown(window: &Window, pair: &Pair) -> Option<String> {
    disk_stall(window, pair).why().or_else(|| Charged::of(window, pair).why())
}

impl Charged {
    /// How the waits of one database divide.
    pub fn of(window: &Window, pair: &Pair) -> Reading<Self> {
        let io = window.io.as_ref();
        io.and_then(|io| {
            io.flows.as_ref().and_then(|_| {
                let waiting = || disk_stall(window, pair).into_value().flatten();
                if is_known(io, &pair.end.id)
                    || waiting().is_none_or(|stall| stall.share.mid < WORTH)
                {
                    Reading::Present(Self::divide(window, io, pair))
                } else {
                    Reading::Absent(STRANGERS.to_owned())
                }
            })
        })
    }

    fn divide(window: &Window, io: &Io, pair: &Pair) -> Self {
        let id = pair.end.id.as_str();
        let all = device_time_s(awaited_requests(io, id));
        let share = |part: f64| if all > 0.0 { (part / all).clamp(0.0, 1.0) } else { 0.0 };
        let of_role =
            |role| device_time_s(awaited_requests(io, id).filter(move |flow| flow.role == role));
        let temporary =
            if pair.end.traits.has_temporary_tables { share(of_role(Role::Temp)) } else { 0.0 };
        let log = share(of_role(Role::Log));
        let images = log * full_page_images::share_of_log(pair).unwrap_or(0.0);
        let (read_s, read_bytes) = reads(io, id, temporary > 0.0);
        // Without a count it may be none of the reads, or all.
        let again = match reread_bytes(window, pair).value() {
            Some(bytes) => Interval::exact((bytes / read_bytes.max(1.0)).min(1.0)),
            None => Interval::new(0.0, 0.0, 1.0),
        };
        let evicted = again.scale(share(read_s));
        let count: u64 = awaited_requests(io, id).map(|flow| flow.requests).sum();
        let request_s = waited_s(io, pair).unwrap_or(all) / count.max(1) as f64;
        let slow = part_above(ORDINARY_S, request_s);
        // Of each request as much as its bytes took, but for what an ordinary disk takes anyway; where
        // a limit on bytes is what everything waits for, as much as their part of these.
        let moved = match disk_limit::reached_limit(window, pair, Limited::WrittenBytes) {
            Some(limit) => full_page_images::freed_share(io, pair, limit)
                .min((1.0 - temporary - evicted.mid).max(0.0)),
            None => {
                log * full_page_images::share_of_log_writes(io, pair)
                    * transfer_part(io, pair).min(slow)
            }
        };
        let kept = 1.0 - temporary - evicted.mid;
        let near = 1.0 - remote_part(io, id, waited_s(io, pair));
        let rest = (kept * slow - moved).max(0.0);
        let remote = rest * (1.0 - near);
        let crowd = occupied_part(io, id);
        // Who commits waits for the log and then for the filesystem, and for both once.
        let commit_s = FileWaits::of(window, io, pair).value().map_or(0.0, |waits| waits.commit_s);
        let late = log * part_above(ALONE_S, request_s + commit_s)
            + (1.0 - log) * part_above(ALONE_S, request_s);
        let crowded = (kept * late - moved).max(0.0) * near;
        let neighbours = crowded * crowd;
        let device = rest * near * (1.0 - crowd);
        Self {
            temporary: Interval::exact(temporary),
            // A shorter log is written as often, so its writes may take as long without them.
            images: Interval::new(0.0, moved, images.max(moved)),
            evicted,
            again,
            remote: Interval::exact(remote),
            // They may have used what the database left, or been in its way each time.
            neighbours: Interval::new(0.0, neighbours, crowded),
            device: Interval::new(device, device, rest * near),
            request_s,
        }
    }
}

/// The part (0..1) of a wait of `taken_s` that is above that of an ordinary disk.
pub fn part_above(ordinary_s: f64, taken_s: f64) -> f64 {
    if taken_s > 0.0 { 1.0 - (ordinary_s / taken_s).min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk_requests::devices_of;
    use crate::test_io::{flow, io};
    use crate::test_window;
    use untax_core::Seconds;
    use untax_core::activity::{Doing, Polling, Spent};
    use untax_core::io::{Direction, Flow};

    fn charged(window: &Window) -> Charged {
        let pair = window.databases().next().unwrap();
        Charged::of(window, &pair).into_value().unwrap()
    }

    #[test]
    fn no_wait_is_charged_twice() {
        let mut window = test_window::postgres();
        let mine = Some("postgres:7");
        let slow = flow(mine, Role::Data, Direction::Read, 1000, 0.005);
        let others = flow(None, Role::Other, Direction::Write, 1000, 0.005);
        window.io = io(vec![slow.clone(), others.clone()]);
        // Of 5 ms, all but the 0.5 that any disk takes, of which neighbours use 0.4 in their part of the time.
        for (network, sum) in [(None, 0.9 + 0.08 * 0.4), (Some("nfs4".to_owned()), 0.9)] {
            if let Reading::Present(io) = &mut window.io
                && let Reading::Present(filesystem) = &mut io.places[0].filesystem
            {
                filesystem.network = network;
            }
            let c = charged(&window);
            let all = [c.temporary, c.images, c.evicted, c.remote, c.neighbours, c.device];
            assert!((all.iter().map(|i| i.mid).sum::<f64>() - sum).abs() < 1e-9, "{c:?}");
        }
    }

    #[test]
    fn a_disk_as_fast_as_any_is_charged_nothing() {
        let mut window = test_window::postgres();
        window.io = io(vec![flow(Some("postgres:7"), Role::Log, Direction::Write, 9000, 0.000_1)]);
        let c = charged(&window);
        assert!(c.device.high.abs() < 1e-12 && c.neighbours.high.abs() < 1e-12);
    }

    #[test]
    fn the_filesystems_own_journal_is_no_neighbour() {
        let write = |database, role| flow(database, role, Direction::Write, 10_000, 0.000_5);
        let log = write(Some("postgres:7"), Role::Log);
        let beside = |other| charged(&waiting(vec![log.clone(), other]));
        assert!(beside(write(None, Role::Filesystem)).neighbours.mid.abs() < 1e-9);
        // A disk of its own would take a fifth of that.
        let charged = beside(write(None, Role::Other));
        assert!((charged.neighbours.mid - 0.8 * 0.4).abs() < 1e-9, "{charged:?}");
        assert!(charged.device.high < 1e-9, "no slower than others under load");
        let all = vec![write(None, Role::Filesystem), write(None, Role::Other), log];
        let io = io(all).into_value().unwrap();
        assert!(
            (occupied_part(&io, "postgres:7") - 0.8 / 3.0).abs() < 1e-9,
            "the journal is no other's"
        );
    }

    /// Five seconds of a database that waits for its disk, by threads that serve clients.
    fn waiting(flows: Vec<Flow>) -> Window {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 5.0)]);
        window.io = io(flows);
        window
    }

    #[test]
    fn requests_of_nobody_price_nothing() {
        let mut window = waiting(vec![flow(None, Role::Other, Direction::Write, 25_000, 0.000_2)]);
        let of = |window: &Window| Charged::of(window, &window.databases().next().unwrap());
        assert!(matches!(of(&window), Reading::Absent(why) if why.contains("dm-crypt")));
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 0.001)]);
        assert!(of(&window).is_present(), "hardly any wait");
    }

    #[test]
    fn a_log_that_never_gets_through_waits_behind_what_is_written_back() {
        let back = flow(Some("postgres:7"), Role::Data, Direction::Write, 100, 0.000_2);
        let mut window = waiting(vec![back.clone()]);
        let stuck = charged(&window);
        assert!(stuck.device.mid > 0.95 && (stuck.request_s - 0.05).abs() < 1e-9);
        assert_eq!(devices_of(window.io.value().unwrap(), "postgres:7"), ["vda"]);
        let log = flow(Some("postgres:7"), Role::Log, Direction::Write, 25_000, 0.000_2);
        window.io = io(vec![back, log]);
        assert!(charged(&window).device.high.abs() < 1e-12, "the log alone is waited for");
    }

    #[test]
    fn what_a_checkpoint_waits_for_makes_no_disk_slow() {
        let log = flow(Some("postgres:7"), Role::Log, Direction::Write, 25_000, 0.000_2);
        let mut window = waiting(vec![log]);
        if let Reading::Present(activities) = &mut window.activity {
            let spent = &mut activities[0].slices[0].spent;
            let checkpointer = Polling::Timed;
            let time_s = Seconds(50.0);
            spent.push(Spent::own(checkpointer, Doing::Disk, time_s));
        }
        assert!((charged(&window).request_s - 0.000_2).abs() < 1e-9);
        assert!(charged(&window).device.high.abs() < 1e-12);
    }
}
