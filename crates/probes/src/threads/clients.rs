//! Who sends to the databases.

use crate::bpf::Running;
use std::cmp::Reverse;

/// `struct client` of threads.h, and how many of its sends were counted.
pub(super) struct Client {
    pub database: u32,
    pub pid: u32,
    count: u64,
}

/// Who sent to the databases in this window, the busiest first; the next one begins without.
pub(super) fn drain(bpf: &Running) -> libbpf_rs::Result<Vec<Client>> {
    let client = |((database, pid), count)| Client { database, pid, count };
    let mut clients: Vec<Client> = bpf.drain("clients")?.into_iter().map(client).collect();
    clients.sort_by_key(|client| Reverse(client.count));
    Ok(clients)
}
