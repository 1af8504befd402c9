//! Questions that several rules ask of the huge-page pools and of page sizes.

use untax_core::database::PoolUse;
use untax_core::host::{HostFacts, Pool};
use untax_core::{Bytes, Database, Snapshot};

/// The host-wide pool of one page size.
pub fn pool(host: &HostFacts, size: Bytes) -> Option<&Pool> {
    let pools = host.hugepages.value()?;
    pools.iter().find(|pool| pool.node.is_none() && pool.size_bytes == size)
}

/// Pages that a new mapping could get: free ones that nobody was promised.
pub fn unreserved_pages(pool: &Pool) -> Option<u64> {
    Some(pool.free.value()?.saturating_sub(*pool.reserved.value()?))
}

/// The size of a base page.
pub fn base_page(host: &HostFacts) -> Bytes {
    host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4)
}

/// Whether a database's data sits on base pages.
pub fn on_base_pages(host: &HostFacts, database: &Database) -> Option<bool> {
    Some(*database.memory.page_size_bytes.value()? <= base_page(host))
}

/// The size of huge page that a database takes, or would take: its own, or the host's default.
pub fn size_for(snapshot: &Snapshot, database: &Database) -> Option<Bytes> {
    let asked = database.huge_pages.value().and_then(|asked| asked.size_bytes.value().copied());
    asked.or_else(|| snapshot.default_huge_page())
}

/// How a database is told to use huge pages.
pub fn switch_on(database: &Database) -> String {
    match &database.traits.pool {
        PoolUse::Setting(setting) => format!("set {setting}"),
        PoolUse::Never | PoolUse::Unknown => "set its setting for huge pages".to_owned(),
    }
}

/// How a database is told to leave huge pages alone.
pub fn switch_off(database: &Database) -> String {
    let setting = match &database.traits.pool {
        PoolUse::Setting(setting) => setting.split_once(" = "),
        PoolUse::Never | PoolUse::Unknown => None,
    };
    match setting {
        Some((name, "on")) => format!("set {name} = off"),
        Some((name, "ON")) => format!("set {name} = OFF"),
        Some((name, _)) => format!("set {name} = FALSE"),
        None => "switch huge pages off in it".to_owned(),
    }
}
