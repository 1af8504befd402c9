//! How much others are in a database's way on its disks.

use crate::model::disk_requests::awaited_requests;
use crate::model::disk_requests::device_time_s;
use crate::model::disk_requests::devices_of;
use untax_core::Io;
use untax_core::io::{Direction, Flow, Role};

/// The chance (0..1) that a request of the database meets its device busy with somebody else's:
/// how busy it was, times the others' part of what occupied it; of several devices the mean, by the time
/// that it waited for each. A device that went, with its counters, was busy for as long as its requests
/// took one after the other, at most.
pub fn occupied_part(io: &Io, database: &str) -> f64 {
    let waits = |name: &str| {
        device_time_s(awaited_requests(io, database).filter(|flow| flow.device == name))
    };
    let crowds = devices_of(io, database)
        .into_iter()
        .map(|name| waits(name) * occupied_part_of(io, database, name));
    let all = device_time_s(awaited_requests(io, database));
    if all > 0.0 { crowds.sum::<f64>() / all } else { 0.0 }
}

/// The same of one device. What occupied it is told by how long reads and writes took, and of these by
/// the model: a small write behind large ones takes as long as they do.
fn occupied_part_of(io: &Io, database: &str, device: &str) -> f64 {
    let here = |direction: Direction| {
        let all = io.flows.value().into_iter().flatten();
        all.filter(move |flow| flow.device == device && flow.direction == direction)
    };
    // What a filesystem writes of its own may be for the database.
    let others =
        |flow: &&Flow| flow.database.as_deref() != Some(database) && flow.role != Role::Filesystem;
    let theirs_s = |direction: Direction| {
        let occupied: f64 = here(direction).map(occupies_s).sum();
        let part: f64 = here(direction).filter(others).map(occupies_s).sum();
        if occupied > 0.0 { device_time_s(here(direction)) * part / occupied } else { 0.0 }
    };
    // Flushes are made on nobody's behalf, the database's own too.
    let moved = [Direction::Read, Direction::Write];
    let all_s: f64 = moved.map(|direction| device_time_s(here(direction))).iter().sum();
    let counted = io.device(device).and_then(|device| device.counted.value());
    let busy = counted.map_or_else(|| (all_s / io.window_s.0).min(1.0), |counted| counted.busy);
    if all_s > 0.0 { busy * moved.map(theirs_s).iter().sum::<f64>() / all_s } else { 0.0 }
}

/// What others than a database read.
pub struct OthersReads {
    /// From the database's disks, bytes.
    pub here_bytes: f64,
    /// From other disks.
    pub elsewhere_bytes: f64,
    /// The part (0..1) of what others occupied the database's disks for.
    pub part_of_occupied: f64,
}

/// What others than this database read, from its disks and from others.
pub fn reads_of_others(io: &Io, database: &str) -> OthersReads {
    let devices = devices_of(io, database);
    let others = || {
        let all = io.flows.value().into_iter().flatten();
        all.filter(|f| f.database.as_deref() != Some(database) && f.role != Role::Filesystem)
    };
    let is_here = |flow: &&Flow| devices.contains(&flow.device.as_str());
    let is_read = |flow: &&Flow| flow.direction == Direction::Read;
    let bytes = |of: &dyn Fn(&&Flow) -> bool| -> f64 {
        others().filter(is_read).filter(of).map(|flow| flow.bytes.0 as f64).sum()
    };
    let moves = |flow: &&Flow| matches!(flow.direction, Direction::Read | Direction::Write);
    let all_s: f64 = others().filter(is_here).filter(moves).map(occupies_s).sum();
    let reads_s: f64 = others().filter(is_here).filter(is_read).map(occupies_s).sum();
    OthersReads {
        here_bytes: bytes(&is_here),
        elsewhere_bytes: bytes(&|flow| !is_here(flow)),
        part_of_occupied: if all_s > 0.0 { reads_s / all_s } else { 0.0 },
    }
}

/// A page, bytes.
const PAGE: f64 = 4096.0;

/// For how long requests occupy a flash disk: the linear model that the kernel's I/O cost controller
/// starts from (block/blk-iocost.c, `AUTOP_SSD_DFL`: so many bytes a second, or single pages at random
/// places). Only the ratio of such times counts, so another disk's pace does not matter.
fn occupies_s(flow: &Flow) -> f64 {
    let (bytes_s, pages_s) = match flow.direction {
        Direction::Read => (488_636_629.0, 8518.0),
        _ => (427_891_549.0, 21_940.0),
    };
    let request_s = 1.0 / pages_s - PAGE / bytes_s;
    flow.requests as f64 * request_s + flow.bytes.0 as f64 / bytes_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use untax_core::io::Device;
    use untax_core::{Bytes, Reading};

    /// A database's hundred requests of 8 KiB, with others' three hundred.
    fn beside(change: impl FnOnce(&mut Flow)) -> Io {
        let mine = flow(Some("postgres:7"), Role::Log, Direction::Write, 100, 0.005);
        let mut others = flow(None, Role::Other, Direction::Write, 300, 0.005);
        change(&mut others);
        io(vec![mine, others]).into_value().unwrap()
    }

    #[test]
    fn only_a_busy_device_is_crowded() {
        let mut io = beside(|_| {});
        assert!((occupied_part(&io, "postgres:7") - 0.75 * 0.8).abs() < 1e-9);
        if let Reading::Present(counted) = &mut io.devices[0].counted {
            counted.busy = 0.01;
        }
        assert!(occupied_part(&io, "postgres:7") < 0.01);
        // Nobody counts: its requests took 2 s of 10, of which 1.5 were others'.
        io.devices.clear();
        assert!((occupied_part(&io, "postgres:7") - 0.75 * 0.2).abs() < 1e-9);
    }

    #[test]
    fn large_requests_occupy_it_for_longer_than_small_ones() {
        let by_size = |bytes| beside(|others| others.bytes = Bytes(bytes * others.requests));
        let chances =
            [4096, 65_536, 1 << 20].map(|bytes| occupied_part(&by_size(bytes), "postgres:7"));
        assert!(chances.is_sorted() && chances[2] > 0.8 * 0.99, "{chances:?}");
        assert!(chances[0] > 0.5, "a request is more than its bytes: {chances:?}");
    }

    #[test]
    fn a_crowd_on_one_disk_is_in_the_way_there() {
        let log = flow(Some("postgres:7"), Role::Log, Direction::Write, 1000, 0.003);
        let mut data = flow(Some("postgres:7"), Role::Data, Direction::Read, 1000, 0.001);
        let mut others = flow(None, Role::Other, Direction::Read, 9000, 0.001);
        (data.device, others.device) = ("vdb".to_owned(), "vdb".to_owned());
        let mut io = io(vec![log, data, others]).into_value().unwrap();
        let vdb = Device { name: "vdb".to_owned(), ..io.devices[0].clone() };
        io.devices.push(vdb);
        assert!((occupied_part(&io, "postgres:7") - 0.25 * 0.8 * 0.9).abs() < 1e-9);
    }
}
