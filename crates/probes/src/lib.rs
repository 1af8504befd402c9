//! What is seen between two moments: snapshots at both ends of a window, samples between them.

mod bpf;
mod disks;
mod faults;
mod io;
mod others;
mod seen;
mod slots;
mod threads;

pub use faults::sample as sample_faults;
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
        let (databases, processes) = (found.databases, found.processes);
        at_present(host, Snapshot { databases, processes, ..without_time(facts.clone()) })
    })
}

/// Takes a snapshot of the host alone: for when what was selected is gone.
pub fn snapshot_of_host(host: &Host) -> Reading<Snapshot> {
    at_present(host, without_time(facts::read_all(host)))
}

fn without_time(host: HostFacts) -> Snapshot {
    let (databases, processes) = (Vec::new(), Vec::new());
    Snapshot { taken_at: Timestamp::UNIX_EPOCH, uptime_s: 0.0, host, databases, processes }
}

/// Says when the snapshot was taken: last, so that a window's length spans the same readings at
/// both ends.
fn at_present(host: &Host, snapshot: Snapshot) -> Reading<Snapshot> {
    let now = host.observe("taken_at", || Reading::Present(Timestamp::now()));
    now.and_then(|taken_at| {
        uptime(host).map(|uptime_s| Snapshot { taken_at, uptime_s, ..snapshot })
    })
}
