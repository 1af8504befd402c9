//! Questions that several rules ask of the huge-page pools and of page sizes.

use untax_core::host::{HostFacts, Pool};
use untax_core::{Bytes, Database};

/// The host-wide pool of one page size.
pub fn pool(host: &HostFacts, size: Bytes) -> Option<&Pool> {
    let pools = host.hugepages.value()?;
    pools.iter().find(|pool| pool.node.is_none() && pool.size_bytes == size)
}

/// Pages that a new mapping could get: free ones that nobody was promised.
pub fn unreserved_pages(pool: &Pool) -> Option<u64> {
    Some(pool.free.value()?.saturating_sub(*pool.reserved.value()?))
}

/// Whether a database's data sits on base pages.
pub fn on_base_pages(host: &HostFacts, database: &Database) -> Option<bool> {
    let base = host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    Some(*database.memory.page_size_bytes.value()? <= base)
}
