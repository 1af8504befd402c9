//! What every disk does for whom: a BPF program at the block layer's tracepoints.
//!
//! It keeps one total in the kernel for each device, database, role and direction; nothing is
//! copied for a request. Whose file a request is for follows from the page that it carries, or
//! from the file of a direct I/O, so that what a kernel thread writes back is known too.

use crate::bpf::{self, Program};
use crate::disk_seconds::EachSecond;
use crate::io::database_files::Known;
use crate::slots::Slots;
use libbpf_rs::{MapCore, MapFlags, OpenMapMut};
use std::collections::{BTreeSet, HashMap};
use untax_core::io::{Bucket, Device, Direction, Flow, Role, Spread, percentile};
use untax_core::{Bytes, Database, Reading, Seconds};
use untax_host::Host;

static PROGRAM: Program = Program {
    object: include_bytes!(concat!(env!("OUT_DIR"), "/disks.bpf.o")),
    // Without it, what others read of a database's files counts as its own.
    optional: &["on_ask"],
    later: &[],
    twins: &[],
};

/// Constants of disks.h.
const LATENCIES: usize = 128;
const SIZES: usize = 32;
const MOST_NAMES: usize = 16;
const SLOT_S: f64 = 0.25;
const NO_DATABASE: u32 = u32::MAX;

/// Where the fields of `struct flow` are: from its requests on there are sums, then peaks, and
/// from here on counts of buckets.
const REQUESTS: usize = 0;
const SUMS: usize = 5;
const ENDS: usize = 9 * 8 + 5 * 8;

/// Bytes of one `struct name`.
const NAME: usize = 24;

/// The disks, being watched until this value is dropped.
pub(crate) struct Disks {
    bpf: bpf::Running,
    slots: Slots,
    /// What the tables of places and processes hold.
    filled: [BTreeSet<Vec<u8>>; 2],
    /// Every `struct flow` as it was when the window opened.
    opened: HashMap<Vec<u8>, Vec<u8>>,
    /// What each had moved, second after second.
    seconds: EachSecond,
}

/// The tables of `Disks::filled`.
const PLACES: usize = 0;
const PROCESSES: usize = 1;
const TABLES: [&str; 2] = ["places", "processes"];

impl Disks {
    /// Begins to watch. The gap says why that is not possible here.
    pub fn watch(databases: &[Database], known: &[Known]) -> Reading<Self> {
        PROGRAM.run(&Host::live(), configure).and_then(|bpf| {
            let slots = Slots::default();
            let (opened, seconds) = (HashMap::default(), EachSecond::new());
            let mut disks = Self { bpf, slots, filled: Default::default(), opened, seconds };
            match disks.open(databases, known) {
                Ok(()) => Reading::Present(disks),
                Err(error) => Reading::Failed(format!("the disks cannot be watched: {error}")),
            }
        })
    }

    /// Opens the next window, over the databases that there are now.
    pub fn open(&mut self, databases: &[Database], known: &[Known]) -> libbpf_rs::Result<()> {
        self.slots.keep(databases);
        let numbers: Vec<u32> = databases.iter().map(|database| self.slots.of(database)).collect();
        let places = known.iter().filter_map(|one| {
            let number = numbers.get(one.database as usize)?;
            Some(place(*number, one))
        });
        self.fill(PLACES, places.collect())?;
        let processes = databases.iter().zip(&numbers).flat_map(|(database, number)| {
            let of = |pid: &u32| (pid.to_ne_bytes().to_vec(), number.to_ne_bytes().to_vec());
            database.pids.iter().map(of)
        });
        self.fill(PROCESSES, processes.collect())?;
        self.bpf.call("forget_peaks")?;
        self.opened = self.flows()?;
        self.seconds = EachSecond::new();
        self.seconds.add(&self.opened);
        Ok(())
    }

    /// Looks at what was moved, once a second; to be called more often.
    pub fn tick(&mut self) {
        if self.seconds.is_due()
            && let Ok(flows) = self.flows()
        {
            self.seconds.add(&flows);
        }
    }

    /// Makes a table hold these entries and no others.
    fn fill(&mut self, table: usize, entries: Vec<(Vec<u8>, Vec<u8>)>) -> libbpf_rs::Result<()> {
        let map = self.bpf.map(TABLES[table])?;
        let keys: BTreeSet<Vec<u8>> = entries.iter().map(|(key, _)| key.clone()).collect();
        for key in self.filled[table].difference(&keys) {
            map.delete(key)?;
        }
        for (key, value) in entries {
            map.update(&key, &value, MapFlags::ANY)?;
        }
        self.filled[table] = keys;
        Ok(())
    }

    fn flows(&self) -> libbpf_rs::Result<HashMap<Vec<u8>, Vec<u8>>> {
        let flows = self.bpf.map("flows")?;
        let mut all = HashMap::new();
        for key in flows.keys() {
            if let Some(value) = flows.lookup(&key, MapFlags::ANY)? {
                all.insert(key, value);
            }
        }
        Ok(all)
    }

    /// What the disks did in a window of that many seconds.
    pub fn read(&self, devices: &[Device], window_s: f64) -> Reading<Vec<Flow>> {
        let read = || {
            let all = self.flows()?.into_iter().filter_map(|(key, mut value)| {
                if let Some(before) = self.opened.get(&key) {
                    subtract(&mut value, before);
                }
                self.flow(&key, &value, devices, window_s)
            });
            Ok::<_, libbpf_rs::Error>(all.collect::<Vec<Flow>>())
        };
        match read() {
            Ok(mut flows) => {
                flows.sort_by_key(|flow| {
                    (flow.device.clone(), flow.database.clone(), flow.role, flow.direction)
                });
                Reading::Present(flows)
            }
            Err(error) => Reading::Failed(format!("what the disks did: {error}")),
        }
    }

    fn flow(&self, key: &[u8], value: &[u8], devices: &[Device], window_s: f64) -> Option<Flow> {
        let number = number32(key, 0)?;
        let (major, minor) = (number >> 20, number & 0xf_ffff);
        let number = format!("{major}:{minor}");
        let named = devices.iter().find(|device| device.number == number);
        let database = match number32(key, 4)? {
            NO_DATABASE => None,
            index => Some(self.slots.id(index)?.to_owned()),
        };
        let of = |field: usize| number64(value, field * 8);
        let (requests, bytes, sequential) = (of(REQUESTS)?, of(1)?, of(2)?);
        if requests == 0 {
            return None;
        }
        let (served, queued, longest, peak) = (of(3)?, of(4)?, of(5)?, of(8)?);
        let latencies = buckets(value, ENDS, LATENCIES, latency_bounds);
        let moved = bytes as f64 * SLOT_S / window_s;
        Some(Flow {
            device: named.map_or(number, |device| device.name.clone()),
            database,
            role: *Role::ALL.get(usize::from(*key.get(8)?))?,
            direction: *Direction::ALL.get(usize::from(*key.get(9)?))?,
            requests,
            bytes: Bytes(bytes),
            sequential: sequential as f64 / requests.max(1) as f64,
            latency: spread(&latencies, served, longest, requests),
            queued_s: Seconds::from_ns(queued / requests.max(1)),
            sizes: buckets(value, ENDS + LATENCIES * 4, SIZES, size_bounds),
            latencies,
            burst: if bytes > 0 { (peak as f64 / moved).max(1.0) } else { 1.0 },
            seconds: self.seconds.of(key),
        })
    }

    /// Processor time that watching took in the kernel since this was asked last.
    pub fn cost_since_last(&mut self) -> Reading<Seconds> {
        self.bpf.cost_since_last()
    }
}

/// Key and value of an entry of `places`.
fn place(number: u32, one: &Known) -> (Vec<u8>, Vec<u8>) {
    let mut value = vec![0; 12];
    value[0..4].copy_from_slice(&number.to_ne_bytes());
    value[4..8].copy_from_slice(&one.owner.unwrap_or_default().to_ne_bytes());
    value[8] = one.owner.is_none().into();
    value[9] = one.role as u8;
    let mut key = vec![0; 16];
    key[0..4].copy_from_slice(&one.device.to_ne_bytes());
    key[8..16].copy_from_slice(&one.inode.to_ne_bytes());
    (key, value)
}

/// Takes what a `struct flow` had counted before off what it has now. Its peaks were forgotten
/// when the window opened.
fn subtract(now: &mut [u8], before: &[u8]) {
    for at in (REQUESTS..SUMS).map(|field| field * 8) {
        let grown = number64(now, at).zip(number64(before, at)).map(|(n, b)| n.wrapping_sub(b));
        if let (Some(grown), Some(place)) = (grown, now.get_mut(at..at + 8)) {
            place.copy_from_slice(&grown.to_ne_bytes());
        }
    }
    for at in (0..LATENCIES + SIZES).map(|bucket| ENDS + bucket * 4) {
        let grown = number32(now, at).zip(number32(before, at)).map(|(n, b)| n.wrapping_sub(b));
        if let (Some(grown), Some(place)) = (grown, now.get_mut(at..at + 4)) {
            place.copy_from_slice(&grown.to_ne_bytes());
        }
    }
}

/// Says which beginnings of names tell what a file is for.
fn configure(map: &mut OpenMapMut) -> libbpf_rs::Result<()> {
    if !map.name().to_string_lossy().ends_with(".rodata") {
        return Ok(());
    }
    // `names` comes first in it, and what follows is zero.
    let mut table = map.initial_value().map(<[u8]>::to_vec).unwrap_or_default();
    for (index, (begins, role)) in untax_engines::file_names().take(MOST_NAMES).enumerate() {
        let mut text = [0; 8];
        let mut mask = [0; 8];
        for (at, byte) in begins.bytes().take(8).enumerate() {
            text[at] = byte;
            mask[at] = 0xff;
        }
        let entry = [text, mask, [*role as u8, 0, 0, 0, 0, 0, 0, 0]].concat();
        if let Some(place) = table.get_mut(index * NAME..(index + 1) * NAME) {
            place.copy_from_slice(&entry);
        }
    }
    map.set_initial_value(&table)
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The buckets of a histogram from its first to its last that counted something.
fn buckets(value: &[u8], at: usize, size: usize, bounds: fn(usize) -> (f64, f64)) -> Vec<Bucket> {
    let all = (0..size).map(|index| {
        let (from, to) = bounds(index);
        Bucket { from, to, count: number32(value, at + index * 4).unwrap_or(0).into() }
    });
    let mut all: Vec<Bucket> = all.skip_while(|bucket| bucket.count == 0).collect();
    while all.last().is_some_and(|bucket| bucket.count == 0) {
        all.pop();
    }
    all
}

/// Seconds between which the latencies of a bucket lie: `latency_bucket` of disks.bpf.c.
fn latency_bounds(index: usize) -> (f64, f64) {
    let edge = |index: usize| {
        let (power, quarter) = (10 + index / 4, index % 4);
        (4 + quarter) as f64 / 4.0 * (1_u64 << power) as f64 / 1e9
    };
    (if index == 0 { 0.0 } else { edge(index) }, edge(index + 1))
}

/// Bytes: `size_bucket` of disks.bpf.c.
fn size_bounds(index: usize) -> (f64, f64) {
    ((512_u64 << index) as f64, (1024_u64 << index) as f64)
}

fn spread(latencies: &[Bucket], served_ns: u64, longest_ns: u64, requests: u64) -> Spread {
    let max_s = Seconds::from_ns(longest_ns);
    let at = |share| Seconds(percentile(latencies, share).min(max_s.0));
    Spread {
        mean_s: Seconds::from_ns(served_ns / requests.max(1)),
        p50_s: at(0.5),
        p90_s: at(0.9),
        p99_s: at(0.99),
        max_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_and_this_program_agree() {
        let header = include_str!("bpf/disks.h");
        for (name, value) in [("LATENCIES", LATENCIES), ("SIZES", SIZES), ("NAMES", MOST_NAMES)] {
            assert!(header.contains(&format!("#define {name} {value}\n")), "{name}");
        }
        assert!(header.contains("#define SLOT 250000000ULL\n"));
        assert!(header.contains("enum role { LOG, DATA, TEMP, OTHER, FILESYSTEM };"));
        assert!(header.contains("enum direction { READ, WRITE, FLUSH, DISCARD };"));
        for (index, role) in Role::ALL.iter().enumerate() {
            assert_eq!(*role as usize, index);
        }
        for (index, direction) in Direction::ALL.iter().enumerate() {
            assert_eq!(*direction as usize, index);
        }
        assert!(untax_engines::file_names().count() <= MOST_NAMES);
    }

    #[test]
    fn a_flow_is_what_it_grew_by_and_its_own_peaks() {
        let flow = |requests: u64, longest: u64, bucket: u32| {
            let mut bytes = vec![0; ENDS + (LATENCIES + SIZES) * 4];
            bytes[0..8].copy_from_slice(&requests.to_ne_bytes());
            bytes[40..48].copy_from_slice(&longest.to_ne_bytes());
            bytes[ENDS + 8..ENDS + 12].copy_from_slice(&bucket.to_ne_bytes());
            bytes
        };
        let mut now = flow(12, 7, 5);
        subtract(&mut now, &flow(9, 100, 3));
        assert_eq!(now, flow(3, 7, 2));
    }

    #[test]
    fn buckets_touch_each_other() {
        for index in 1..LATENCIES {
            assert!((latency_bounds(index - 1).1 - latency_bounds(index).0).abs() < 1e-12);
        }
        // 1.75 * 2^20 ns is in the fourth quarter of its power.
        let (from, to) = latency_bounds(10 * 4 + 3);
        assert!(from <= 1.75 * 1_048_576e-9 && 1.99 * 1_048_576e-9 < to);
        assert_eq!(size_bounds(3), (4096.0, 8192.0));
    }
}
