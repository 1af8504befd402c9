//! What is seen between two moments: snapshots at both ends of a window, samples between them.

mod bpf;
mod disks;
mod faults;
mod frequencies;
mod group_memory;
mod io;
mod other_cpu_users;
mod probes;
mod refusal;
mod send_rates;
mod slots;
mod threads;

pub use faults::sample as sample_faults;
use group_memory::read_groups;
use jiff::Timestamp;
pub use probes::{Observations, Probes};
pub use threads::Threads;
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
    snapshot_of_host(host).and_then(|snapshot| {
        let found = discover(host, &snapshot.host, selection, asker);
        found.map(|found| Snapshot {
            databases: found.databases,
            processes: found.processes,
            kernel_workers: found.kernel_workers,
            sandboxes: found.sandboxes,
            ..snapshot
        })
    })
}

/// Takes a snapshot of the host alone: for when what was selected is gone.
///
/// Its time is that of what it counts, before servers are asked: that takes as long as they make it.
pub fn snapshot_of_host(host: &Host) -> Reading<Snapshot> {
    let facts = facts::read_all(host);
    let now = host.observe("taken_at", || Reading::Present(Timestamp::now()));
    now.and_then(|taken_at| {
        uptime(host).map(|uptime_s| Snapshot {
            groups: read_groups(host, &facts),
            ..Snapshot::of_host(taken_at, uptime_s, facts)
        })
    })
}
