//! Which cause a database's waiting for its disks is charged to: what the disk rules share.
//!
//! Every wait is charged once. What spilled temporary files and full page images wait for would
//! end with them. Of the rest, a disk as anyone has it would take a part too; only what is above
//! that is the platform's, and that is the storage's, the neighbours' or the device's own. A disk that
//! works for others too takes longer than one that is alone: what they add is the neighbours' from there on.

use crate::model::disk_limit;
use crate::model::disk_neighbours::occupied_part;
use crate::model::file_waits::FileWaits;
use crate::model::full_page_images;
use crate::model::memory_shortage;
use crate::model::stall::{Stall, WORTH};
use untax_core::activity::{Doing, Part, Spent};
use untax_core::database::Limited;
use untax_core::io::{Behind, Direction, Flow, Place, Role};
use untax_core::window::Pair;
use untax_core::{Evidence, Interval, Io, Reading, Window};

/// Why nothing is charged where no request is known as the database's own: those of ZFS carry no pages of
/// files, nor do writes of an encrypted device.
pub const STRANGERS: &str = "its threads waited for disks, but few requests or none were known as its own: \
                         the filesystem or the device hides whose they are (btrfs, overlay, ZFS, dm-crypt)";

/// Their files have other numbers to who asks for them than to who writes them, or their requests no pages.
const HIDING: [&str; 3] = ["btrfs", "overlay", "zfs"];

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

/// The waiting for block devices.
pub fn disk_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    Stall::of(window, pair, |spent| spent.held_by(Doing::Disk, pair.end.model))
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

/// The device time of requests: from making to completion, summed.
pub fn device_time_s<'a>(flows: impl Iterator<Item = &'a Flow>) -> f64 {
    flows.map(|f| f.requests as f64 * (f.latency.mean_s.0 + f.queued_s.0)).fold(0.0, |a, b| a + b)
}

/// The requests of one database that its threads wait for. Changed data is written back behind
/// their backs, but for when nothing else gets through: then they wait behind it, as below a limit on
/// requests. Nobody waits for a discard.
pub fn awaited_requests<'a>(io: &'a Io, database: &'a str) -> impl Iterator<Item = &'a Flow> {
    let written_back = |flow: &Flow| (flow.role, flow.direction) == (Role::Data, Direction::Write);
    let moved = |flow: &&Flow| flow.direction != Direction::Discard;
    let behind_them = io.flows_of(database).filter(moved).all(written_back);
    let waited = move |flow: &&Flow| moved(flow) && (behind_them || !written_back(flow));
    // A loop device's requests come again on the disk behind it, which counts for what lies there itself.
    // Devices made of others may have no requests of their own: then those of the others count.
    let looped = io.flows_of(database).filter(waited).any(|flow| is_on_loop(io, database, flow));
    let own = io.flows_of(database).filter(waited);
    own.filter(move |flow| !looped || is_on_loop(io, database, flow) || holds(io, database, flow))
}

/// Whether requests are to a loop device that holds something of the database.
fn is_on_loop(io: &Io, database: &str, flow: &Flow) -> bool {
    io.device(&flow.device).is_some_and(|device| device.behind == Behind::Loop)
        && io.places_of(database).any(|place| is_on(place, flow))
}

/// Whether what the requests are for lies on the device that they are to: a role without a place of its own
/// lies with the data.
fn holds(io: &Io, database: &str, flow: &Flow) -> bool {
    let places = |role| io.places_of(database).filter(move |place| place.role == role);
    let role = places(flow.role).next().map_or(Role::Data, |place| place.role);
    places(role).any(|place| is_on(place, flow))
}

fn is_on(place: &Place, flow: &Flow) -> bool {
    place.filesystem.value().is_some_and(|on| on.device.as_ref() == Some(&flow.device))
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
        let temporary = if pair.end.engine == "mysql" { share(of_role(Role::Temp)) } else { 0.0 };
        let log = share(of_role(Role::Log));
        let images = log * full_page_images::share_of_log(pair).unwrap_or(0.0);
        let (read_s, read_bytes) = reads(io, id, temporary > 0.0);
        // Without a count it may be none of the reads, or all.
        let again = match memory_shortage::reread_bytes(window, pair).value() {
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

/// Whether the requests that a database waits for are known as its own.
fn is_known(io: &Io, database: &str) -> bool {
    !is_hidden(io, database) && awaited_requests(io, database).next().is_some()
}

/// Whether a database's requests are not known as its own, or not all of them: its filesystem hides whose
/// they are, or workers of the kernel copy what is written, and only what it reads tells.
pub fn is_hidden(io: &Io, database: &str) -> bool {
    let mut places = io.places_of(database).filter(|place| place.role != Role::Temp);
    if places.any(|place| place.filesystem.value().is_some_and(|f| HIDING.contains(&&*f.kind))) {
        return true;
    }
    let mut devices =
        io.places_of(database).filter_map(|p| io.device(p.filesystem.value()?.device.as_ref()?));
    let copied = devices.any(|device| device.behind == Behind::Copied);
    let here = devices_of(io, database);
    let strange = |flow: &&Flow| {
        let is_here = here.contains(&flow.device.as_str());
        is_here && flow.database.is_none() && flow.direction == Direction::Write
    };
    let strangers = device_time_s(io.flows.value().into_iter().flatten().filter(strange));
    copied
        && strangers >= device_time_s(awaited_requests(io, database))
        && log_writes(io, database).next().is_none()
}

/// The part (0..1) of the time of a database's requests that is of places behind a network. Where a
/// filesystem of the network has no requests that could be seen, it is what those that were seen do not
/// explain of the time that threads waited (s).
fn remote_part(io: &Io, database: &str, waited: Option<f64>) -> f64 {
    let places = io.places_of(database).filter(|place| place.role != Role::Temp);
    let far = places.filter_map(|p| p.filesystem.value().filter(|f| f.network.is_some()));
    let devices: Option<Vec<&str>> = far.map(|filesystem| filesystem.device.as_deref()).collect();
    let Some(devices) = devices else {
        let seen = device_time_s(awaited_requests(io, database));
        return waited.filter(|waited| *waited > 0.0).map_or(1.0, |w| 1.0 - (seen / w).min(1.0));
    };
    // A device that is made of others has no requests of its own: theirs count.
    let is_far = |flow: &&Flow| {
        let behind = io.device(&flow.device).map(|device| &device.behind);
        devices.contains(&flow.device.as_str())
            || (!devices.is_empty() && matches!(behind, Some(Behind::Network(_))))
    };
    let all = device_time_s(awaited_requests(io, database));
    if all > 0.0 { device_time_s(awaited_requests(io, database).filter(is_far)) / all } else { 0.0 }
}

/// What a database's reads took of its devices, s, and how much they read, bytes; those of temporary
/// files may be charged elsewhere.
fn reads(io: &Io, database: &str, without_temporary: bool) -> (f64, f64) {
    let counts = |flow: &&Flow| {
        flow.direction == Direction::Read && !(without_temporary && flow.role == Role::Temp)
    };
    let reads = || awaited_requests(io, database).filter(counts);
    (device_time_s(reads()), reads().map(|flow| flow.bytes.0 as f64).sum())
}

/// The writes to a database's log.
pub fn log_writes<'a>(io: &'a Io, database: &'a str) -> impl Iterator<Item = &'a Flow> {
    awaited_requests(io, database)
        .filter(|flow| (flow.role, flow.direction) == (Role::Log, Direction::Write))
}

/// The part (0..1) of the waiting in which the log's bytes were moved, at the pace of the log's
/// busiest quarter of a second: the device can do that, or more.
fn transfer_part(io: &Io, pair: &Pair) -> f64 {
    let burst = log_writes(io, &pair.end.id).map(|flow| flow.burst).fold(1.0, f64::max);
    match waited_s(io, pair) {
        Some(waited) if waited > 0.0 => (io.window_s.0 / burst / waited).min(1.0),
        _ => 0.0,
    }
}

/// How long the database's threads waited for block devices themselves while requests were counted, but
/// for processes that nobody waits for: what these write back is not among the requests either.
pub fn waited_s(io: &Io, pair: &Pair) -> Option<f64> {
    let activity = pair.activity.value()?;
    let model = pair.end.model;
    let waits = |s: &Spent| s.part(model) == Part::Disk && !s.in_background(model);
    let waited = activity.sum(|s| matches!(s.doing, Doing::Disk | Doing::AsyncIo) && waits(s));
    Some(waited.0 * io.window_s.0 / activity.window_s.0.max(f64::MIN_POSITIVE))
}

/// The devices that a database waits for.
pub fn devices_of<'a>(io: &'a Io, database: &'a str) -> Vec<&'a str> {
    let mut names: Vec<&str> =
        awaited_requests(io, database).map(|flow| flow.device.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The largest flows of a database as evidence: how many, how fast, how slow.
pub fn evidence(io: &Io, database: &str) -> Vec<Evidence> {
    let mut flows: Vec<&Flow> = awaited_requests(io, database).collect();
    flows.sort_by(|a, b| {
        device_time_s([*b].into_iter()).total_cmp(&device_time_s([*a].into_iter()))
    });
    let seconds = io.window_s.0.max(f64::MIN_POSITIVE);
    let of = |flow: &&Flow| {
        let what = format!("{} {}", flow.role.name(), flow.direction.name());
        let source = format!("block requests on {}, traced", flow.device);
        [
            Evidence::new(&format!("{what}: mean time"), flow.latency.mean_s.0, "s", &*source),
            Evidence::new(&format!("{what}: 99 %"), flow.latency.p99_s.0, "s", &*source),
            Evidence::new(&format!("{what}s"), flow.requests as f64 / seconds, "1/s", source),
        ]
    };
    flows.iter().take(2).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window;
    use untax_core::Seconds;
    use untax_core::activity::Polling;
    use untax_core::io::Device;

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

    /// The log on `vda`, and data on `vdb`, of which each request took `data_s`.
    fn on_two_disks(data_s: f64) -> Io {
        let log = flow(Some("postgres:7"), Role::Log, Direction::Write, 1000, 0.003);
        let mut data = flow(Some("postgres:7"), Role::Data, Direction::Read, 1000, data_s);
        data.device = "vdb".to_owned();
        let mut io = io(vec![log, data]).into_value().unwrap();
        if let Reading::Present(filesystem) = &mut io.places[0].filesystem {
            filesystem.device = Some("vdb".to_owned());
        }
        io.devices.push(Device { name: "vdb".to_owned(), ..io.devices[0].clone() });
        io
    }

    #[test]
    fn requests_of_a_loop_device_count_once() {
        let mut io = on_two_disks(0.001);
        io.devices[1].behind = Behind::Loop;
        if let Reading::Present(flows) = &mut io.flows {
            let again = |flow: &Flow| Flow { device: "vda".to_owned(), ..flow.clone() };
            flows.extend([again(&flows[1]), Flow { role: Role::Temp, ..again(&flows[1]) }]);
        }
        let mut counted = |second: Role| {
            io.places[1].role = second;
            let waited = awaited_requests(&io, "postgres:7");
            waited.map(|flow| (flow.role, flow.device.clone())).collect::<Vec<_>>()
        };
        let of = |role, device: &str| (role, device.to_owned());
        let data = of(Role::Data, "vdb");
        assert_eq!(counted(Role::Log), [of(Role::Log, "vda"), data.clone()]);
        // What it spills lies on the disk behind the loop device: the data do not.
        assert_eq!(counted(Role::Temp), [data, of(Role::Temp, "vda")]);
    }

    #[test]
    fn a_far_disk_is_charged_for_its_own_requests() {
        let mut io = on_two_disks(0.001);
        assert!(remote_part(&io, "postgres:7", None).abs() < 1e-9);
        let mut network = |device: Option<&str>| {
            if let Reading::Present(filesystem) = &mut io.places[0].filesystem {
                filesystem.network = Some("iSCSI".to_owned());
                filesystem.device = device.map(str::to_owned);
            }
            [None, Some(5.0), Some(3.0)].map(|waited_s| remote_part(&io, "postgres:7", waited_s))
        };
        assert!(network(Some("vdb")).iter().all(|part| (part - 0.25).abs() < 1e-9));
        // Nobody sees its requests; those of the disk of the log and the other took 4 s.
        let [unknown, longer, shorter] = network(None);
        assert!((unknown - 1.0).abs() < 1e-9 && (longer - 0.2).abs() < 1e-9);
        assert!(shorter.abs() < 1e-9);
    }

    #[test]
    fn some_filesystems_hide_who_writes() {
        let log = flow(Some("postgres:7"), Role::Log, Direction::Write, 50, 0.000_2);
        let mut io = io(vec![log]).into_value().unwrap();
        assert!(is_known(&io, "postgres:7"));
        if let Reading::Present(filesystem) = &mut io.places[0].filesystem {
            filesystem.kind = "btrfs".to_owned();
        }
        assert!(!is_known(&io, "postgres:7"));
    }

    #[test]
    fn an_encrypted_device_hides_who_writes() {
        let read = flow(Some("postgres:7"), Role::Data, Direction::Read, 50, 0.000_2);
        let bounced = flow(None, Role::Other, Direction::Write, 9000, 0.000_2);
        let mut io = io(vec![read, bounced]).into_value().unwrap();
        assert!(is_known(&io, "postgres:7"), "a neighbour writes");
        io.devices[0].behind = Behind::Mapped;
        assert!(is_known(&io, "postgres:7"), "a volume of a group");
        io.devices[0].behind = Behind::Copied;
        assert!(!is_known(&io, "postgres:7"));
        if let Reading::Present(flows) = &mut io.flows {
            flows.push(flow(Some("postgres:7"), Role::Log, Direction::Write, 1, 0.000_2));
        }
        assert!(is_known(&io, "postgres:7"), "what it writes is known too");
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
            spent.push(Spent { polling: checkpointer, doing: Doing::Disk, time_s });
        }
        assert!((charged(&window).request_s - 0.000_2).abs() < 1e-9);
        assert!(charged(&window).device.high.abs() < 1e-12);
    }
}
