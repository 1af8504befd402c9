//! Faults of server processes, sampled inside a window.

use untax_core::Database;
use untax_core::database::Model;
use untax_core::window::FaultSample;
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
    let read: Vec<FaultSample> =
        children.filter_map(|child| sample_process(host, &database.id, child)).collect();
    read.into_iter().reduce(|all, one| FaultSample {
        mapped_shared_bytes: all.mapped_shared_bytes + one.mapped_shared_bytes,
        page_table_bytes: all.page_table_bytes.zip(one.page_table_bytes).map(|(a, b)| a + b),
        minor_faults: all.minor_faults + one.minor_faults,
        ..all
    })
}

/// All readings of one process, or none: it may end between them.
fn sample_process(host: &Host, database: &str, pid: u32) -> Option<FaultSample> {
    let status = process::status(host, pid).into_value()?;
    Some(FaultSample {
        database: database.to_owned(),
        mapped_shared_bytes: status.resident_shared?,
        page_table_bytes: status.page_tables,
        minor_faults: process::stat(host, pid).into_value()?.minor_faults,
    })
}
