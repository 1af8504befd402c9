//! What is seen between two moments: snapshots at both ends of a window, samples between them.

mod bpf;
mod disks;
mod faults;
mod groups;
mod io;
mod others;
mod seen;
mod threads;

pub use faults::sample as sample_faults;
use groups::groups;
pub use groups::pressed;
use jiff::Timestamp;
pub use others::busiest;
pub use seen::{Probes, Seen};
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
    let facts = facts::read_all(host);
    let taken = || {
        let found = discover(host, &facts, selection, asker).into_result()?;
        Ok(Snapshot {
            taken_at: host
                .observe("taken_at", || Reading::Present(Timestamp::now()))
                .into_result()?,
            // Last, so that a window's length spans the same readings at both ends.
            uptime_s: uptime(host).into_result()?,
            host: facts.clone(),
            databases: found.databases,
            processes: found.processes,
            groups: groups(host, &facts),
            sandboxes: found.sandboxes,
        })
    };
    taken().into()
}
