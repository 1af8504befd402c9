//! What is seen between two moments: snapshots at both ends of a window, samples between them.

mod bpf;
mod disks;
mod faults;
mod groups;
mod io;
mod others;
mod seen;
mod sending;
mod slots;
mod threads;

pub use faults::sample as sample_faults;
use groups::groups;
pub use groups::pressed;
use jiff::Timestamp;
pub use others::busiest;
pub use seen::{Probes, Seen};
pub use threads::Threads;
use untax_core::host::HostFacts;
use untax_core::{Reading, Snapshot};
use untax_engines::{Asker, Selection, discover};
use untax_host::{Host, facts};

/// Seconds since boot of the host, from `/proc/uptime`; advances by hundredths.
fn uptime(host: &Host) -> Reading<f64> {
    host.text("/proc/uptime")
        .parse("/proc/uptime", |text| text.split_ascii_whitespace().next()?.parse().ok())
}

/// Takes a snapshot: all facts of the host, and the selected databases.
///
/// The gap says why there is none: the host's clock or its list of processes could not be read.
pub fn snapshot(host: &Host, asker: &Asker, selection: &Selection) -> Reading<Snapshot> {
    let facts = facts::read_all(host);
    discover(host, &facts, selection, asker).and_then(|found| {
        let snapshot = Snapshot {
            databases: found.databases,
            processes: found.processes,
            sandboxes: found.sandboxes,
            ..of_host(host, facts.clone())
        };
        at_present(host, snapshot)
    })
}

/// Takes a snapshot of the host alone: for when what was selected is gone.
pub fn snapshot_of_host(host: &Host) -> Reading<Snapshot> {
    at_present(host, of_host(host, facts::read_all(host)))
}

/// A snapshot without databases, and without its time.
fn of_host(host: &Host, facts: HostFacts) -> Snapshot {
    Snapshot {
        taken_at: Timestamp::UNIX_EPOCH,
        uptime_s: 0.0,
        groups: groups(host, &facts),
        host: facts,
        databases: Vec::new(),
        processes: Vec::new(),
        sandboxes: Vec::new(),
    }
}

/// Says when the snapshot was taken: last, so that a window's length spans the same readings at
/// both ends.
fn at_present(host: &Host, snapshot: Snapshot) -> Reading<Snapshot> {
    let now = host.observe("taken_at", || Reading::Present(Timestamp::now()));
    now.and_then(|taken_at| {
        uptime(host).map(|uptime_s| Snapshot { taken_at, uptime_s, ..snapshot })
    })
}
