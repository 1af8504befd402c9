//! Disks, filesystems, dirty pages and writers, watched for a window.

pub(crate) mod database_files;
mod devices;
mod dirty;
mod writers;

use crate::disks::Disks;
use database_files::Known;
use std::time::Instant;
use untax_core::io::{Device, Dirty};
use untax_core::{Database, Io, Reading, Seconds};
use untax_host::Host;

/// The disks of a host, being watched for some databases until this value is dropped.
pub struct Watch {
    databases: Vec<Database>,
    places: Vec<untax_core::io::Place>,
    disks: Reading<Disks>,
    counted: devices::Counts,
    written: writers::Counts,
    journals: Vec<dirty::JournalCount>,
    dirty: Reading<Dirty>,
    since: Instant,
}

impl Watch {
    /// Opens a window.
    pub fn begin(host: &Host, databases: &[Database]) -> Self {
        Self::with(host, databases, Disks::watch)
    }

    /// Opens the next window, over the databases that there are now.
    pub fn next(self, host: &Host, databases: &[Database]) -> Self {
        let disks = self.disks;
        Self::with(host, databases, |databases, known| {
            disks.and_then(|mut disks| match disks.open(databases, known) {
                Ok(()) => Reading::Present(disks),
                // What is left in its tables is not known.
                Err(_) => Disks::watch(databases, known),
            })
        })
    }

    fn with(
        host: &Host,
        databases: &[Database],
        disks: impl FnOnce(&[Database], &[Known]) -> Reading<Disks>,
    ) -> Self {
        let (places, known) = database_files::of_all(host, databases);
        Self {
            databases: databases.to_vec(),
            places,
            disks: disks(databases, &known),
            counted: devices::count(host),
            written: writers::count(host),
            journals: dirty::journals(host),
            dirty: dirty::read(host),
            since: Instant::now(),
        }
    }

    /// Does what is due; to be called several times a second.
    pub fn tick(&mut self) {
        if let Reading::Present(disks) = &mut self.disks {
            disks.tick();
        }
    }

    /// Looks at what changes within the window.
    pub fn sample(&mut self, host: &Host) {
        let before = std::mem::replace(&mut self.dirty, Reading::Absent(String::new()));
        self.dirty = dirty::larger(before, dirty::read(host));
    }

    /// Closes the window: what was seen in it, and the processor time that it took in the kernel.
    pub fn end(&mut self, host: &Host) -> (Io, Reading<Seconds>) {
        self.sample(host);
        let window_s = self.since.elapsed().as_secs_f64();
        let all = devices::all(host, &self.counted, window_s);
        let flows = self.disks.as_ref().and_then(|disks| disks.read(&all, window_s));
        let writers = writers::growth(host, &self.written, &self.databases, window_s);
        let journals = dirty::journal_growth(host, &self.journals);
        let cost = self.disks.as_mut().and_then(Disks::cost_since_last);
        let told = |device: &Device| {
            let name = Some(&device.name);
            let held = self.places.iter().filter_map(|place| place.filesystem.value());
            let moved = device.counted.value().map_or(0, |c| c.reads + c.writes);
            let seen = flows.value().into_iter().flatten().any(|flow| flow.device == device.name);
            let holds = held.into_iter().any(|filesystem| filesystem.device.as_ref() == name);
            moved > 0 || seen || holds
        };
        let devices = all.into_iter().filter(told).collect();
        let io = Io {
            window_s: Seconds(window_s),
            flows,
            devices,
            places: self.places.clone(),
            dirty: self.dirty.clone(),
            writers,
            journals,
        };
        (io, cost)
    }
}
