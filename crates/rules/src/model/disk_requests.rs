//! A database's requests to block devices: which of them its threads wait for, and for how long.

use crate::evidence;
use crate::model::stall::Stall;
use untax_core::activity::{Cause, Doing, Part, Polling, Spent};
use untax_core::io::{Behind, Direction, Flow, Place, Role, Writer};
use untax_core::window::Pair;
use untax_core::{Evidence, Io, Reading, Window};

/// Why nothing is charged where no request is known as the database's own: those of ZFS carry no pages of
/// files, nor do writes of an encrypted device.
pub const STRANGERS: &str = "its threads waited for disks, but few requests or none were known as its own: \
                         the filesystem or the device hides whose they are (btrfs, overlay, ZFS, dm-crypt)";

/// Their files have other numbers to who asks for them than to who writes them, or their requests no pages.
const HIDING: [&str; 3] = ["btrfs", "overlay", "zfs"];

/// The waiting for block devices.
pub fn disk_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    Stall::of(window, pair, |spent| spent.goes_to(Cause::Disk, pair.end.model))
}

/// How long the database's threads waited for block devices themselves while requests were counted, those that
/// read for others among them, but for processes that nobody waits for: what these write back is not among the
/// requests either.
pub fn waited_s(io: &Io, pair: &Pair) -> Option<f64> {
    let activity = pair.activity.value()?;
    let model = pair.end.model;
    let awaited = |s: &Spent| s.polling == Polling::Helper || !s.in_background(model);
    // Of the journal too: its thread waits for the disk while it writes a transaction.
    let own = |s: &Spent| s.behind.is_none() || s.doing == Doing::Filesystem;
    let waits = |s: &Spent| own(s) && s.cause() == Cause::Disk;
    let waited = activity.sum(|s| waits(s) && s.part(model) == Part::Disk && awaited(s));
    Some(waited.0 * io.window_s.0 / activity.window_s.0.max(f64::MIN_POSITIVE))
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

/// Whether the requests that a database waits for are known as its own.
pub fn is_known(io: &Io, database: &str) -> bool {
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
pub fn remote_part(io: &Io, database: &str, waited: Option<f64>) -> f64 {
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
pub fn reads(io: &Io, database: &str, without_temporary: bool) -> (f64, f64) {
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
pub fn transfer_part(io: &Io, pair: &Pair) -> f64 {
    let burst = log_writes(io, &pair.end.id).map(|flow| flow.burst).fold(1.0, f64::max);
    match waited_s(io, pair) {
        Some(waited) if waited > 0.0 => (io.window_s.0 / burst / waited).min(1.0),
        _ => 0.0,
    }
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
            Evidence::new(&evidence::DISK_MEAN, flow.latency.mean_s.0, &*source).of(&what),
            Evidence::new(&evidence::DISK_P99, flow.latency.p99_s.0, &*source).of(&what),
            Evidence::new(&evidence::DISK_REQUESTS, flow.requests as f64 / seconds, source)
                .of(&what),
        ]
    };
    flows.iter().take(2).flat_map(of).collect()
}

/// How much one process wrote.
pub fn written_by(writer: &Writer) -> Evidence {
    let source = format!("/proc/{}/io", writer.pid);
    let writing = format!("{} ({})", writer.comm, writer.cgroup);
    Evidence::new(&evidence::WRITTEN_BY, writer.written_bytes.0, source).of(&writing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use untax_core::io::Device;

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
}
