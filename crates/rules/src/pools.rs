//! Questions that several rules ask of the huge-page pools and of page sizes.

use untax_core::host::{HostFacts, Pool};
use untax_core::{Bytes, Database};

/// The host-wide pool of one page size.
pub fn pool(host: &HostFacts, size: Bytes) -> Option<&Pool> {
    let pools = host.hugepages.value()?;
    pools.iter().find(|pool| pool.node.is_none() && pool.size_bytes == size)
}

/// Pages that a new mapping could get: free ones that nobody was promised.
pub fn unpromised(pool: &Pool) -> Option<u64> {
    Some(pool.free.value()?.saturating_sub(*pool.reserved.value()?))
}

/// Whether a database's data sits on base pages.
pub fn on_base_pages(host: &HostFacts, database: &Database) -> Option<bool> {
    let base = host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    Some(*database.memory.page_size_bytes.value()? <= base)
}

/// The sizes of pages as people write them: 4k, 2m, 1g.
pub fn page_name(size: Bytes) -> String {
    match size.0 {
        s if s >= 1 << 30 && s % (1 << 30) == 0 => format!("{}g", s >> 30),
        s if s >= 1 << 20 && s % (1 << 20) == 0 => format!("{}m", s >> 20),
        s => format!("{}k", s >> 10),
    }
}
