//! Who sends to the databases.

use super::total::numbers;
use crate::bpf::Running;
use libbpf_rs::{MapCore, MapFlags};
use std::cmp::Reverse;

/// `struct client` of threads.h, and how many of its sends were counted.
pub(super) struct Client {
    pub database: u32,
    pub pid: u32,
    count: u64,
}

/// Who sent to the databases in this window, the busiest first; the next one begins without.
pub(super) fn taken(bpf: &Running) -> libbpf_rs::Result<Vec<Client>> {
    let map = bpf.map("clients")?;
    let mut clients = Vec::new();
    let keys: Vec<Vec<u8>> = map.keys().collect();
    for key in keys {
        // An entry may give way to a newer one meanwhile.
        let Some(count) = map.lookup(&key, MapFlags::ANY)? else { continue };
        let number = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
        if let (Some(database), Some(pid), Some(&[count])) = (
            key.get(0..4).and_then(number),
            key.get(4..8).and_then(number),
            numbers(&count).get(..1),
        ) {
            clients.push(Client { database, pid, count });
        }
        let _ = map.delete(&key);
    }
    clients.sort_by_key(|client| Reverse(client.count));
    Ok(clients)
}
