//! Faults of server processes, sampled inside a window.

use untax_core::database::Model;
use untax_core::window::FaultSample;
use untax_core::{Bytes, Database};
use untax_host::{Host, process};

/// Samples what the processes of each multi-process database have faulted in. Costs a `stat` and a
/// `status` for each; takes no lock that the database wants.
///
/// A database whose processes cannot be listed or read gives no sample: the rules then go by the
/// snapshots alone.
pub fn sample(host: &Host, databases: &[Database]) -> Vec<FaultSample> {
    let multi = databases.iter().filter(|database| database.model == Model::Process);
    multi.filter_map(|database| sample_one(host, database)).collect()
}

fn sample_one(host: &Host, database: &Database) -> Option<FaultSample> {
    let pid = database.pid;
    let children = host.text(&format!("/proc/{pid}/task/{pid}/children")).into_value()?;
    let children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
    let read: Vec<(Bytes, u64)> = children.filter_map(|child| faulted(host, child)).collect();
    (!read.is_empty()).then(|| FaultSample {
        database: database.id.clone(),
        mapped_shared_bytes: read.iter().map(|(mapped, _)| *mapped).sum(),
        minor_faults: read.iter().map(|(_, faults)| faults).sum(),
    })
}

/// Both readings of one process, or neither: it may end between them.
fn faulted(host: &Host, pid: u32) -> Option<(Bytes, u64)> {
    let mapped = process::status(host, pid).into_value()?.resident_shared?;
    let faults = process::stat(host, pid).into_value()?.minor_faults;
    Some((mapped, faults))
}
