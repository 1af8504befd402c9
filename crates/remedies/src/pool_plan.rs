//! How many huge pages a plan wants on each node: never fewer than there are, and never more than
//! memory holds.

use crate::case::Case;
use crate::sizing::{POOL_SHARE, spread};
use untax_core::database::PoolUse;
use untax_core::host::{HostFacts, Pool};
use untax_core::{Bytes, Database};

/// What a plan makes of the pool of the advised size.
pub enum PoolPlan<'a> {
    /// No database that suffers is known to need pages of this size, or this host has no such pool.
    Nothing,
    /// The pool would be larger than the memory of this host allows.
    TooLarge {
        /// The pages that are missing.
        more: Bytes,
        /// What of memory pools may still take.
        room: Bytes,
    },
    /// The pool as it is to be.
    Wanted(Vec<Place<'a>>),
}

/// A pool on one node, or on the host where its nodes are not known.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The pool.
    pub pool: &'a Pool,
    /// The pages that are configured.
    pub now: u64,
    /// The pages that it is to have: as many or more.
    pub to: u64,
}

impl<'a> PoolPlan<'a> {
    /// The plan for the databases of a case.
    pub fn of(case: &Case<'a>) -> Self {
        Self::made(case).unwrap_or(Self::Nothing)
    }

    fn made(case: &Case<'a>) -> Option<Self> {
        let host = &case.snapshot.host;
        let page = case.page()?;
        let pools = host.hugepages.value()?;
        let of_size = || pools.iter().filter(|pool| pool.size_bytes == page);
        let whole = of_size().find(|pool| pool.node.is_none())?;
        let now = configured(whole)?;
        let wanted = wanted(case, whole, page)?.max(now);
        let more = wanted - now;
        let total = host.memory.value()?.total_bytes;
        let places = of_size().filter(|pool| pool.node.is_some());
        let places: Option<Vec<(&Pool, u64, u64)>> = places
            .map(|pool| {
                let now = configured(pool)?;
                Some((pool, now, room(host, pool, memory_of(host, pool.node?)?)?))
            })
            .collect();
        let of_host = room(host, whole, total)?;
        let places = places.filter(|places| !places.is_empty());
        let places = places.unwrap_or_else(|| vec![(whole, now, of_host)]);
        let rooms: Vec<u64> = places.iter().map(|(.., room)| *room).collect();
        let room = of_host.min(rooms.iter().fold(0, |sum: u64, room| sum.saturating_add(*room)));
        if more > room {
            let bytes = |pages: u64| Bytes(pages.saturating_mul(page.0));
            return Some(Self::TooLarge { more: bytes(more), room: bytes(room) });
        }
        let parts = spread(more, &rooms);
        let places = places.into_iter().zip(parts);
        let places = places.map(|((pool, now, _), more)| Place { pool, now, to: now + more });
        Some(Self::Wanted(places.collect()))
    }
}

/// Pages that are configured: surplus ones go when they are free.
fn configured(pool: &Pool) -> Option<u64> {
    Some(pool.total.value()?.saturating_sub(*pool.surplus.value()?))
}

/// The pages of a size that are configured on this host, and the most that there may be.
pub fn now_and_most(case: &Case, page: Bytes) -> Option<(u64, u64)> {
    let host = &case.snapshot.host;
    let mut pools = host.hugepages.value()?.iter().filter(|pool| pool.size_bytes == page);
    let whole = pools.find(|pool| pool.node.is_none())?;
    let now = configured(whole)?;
    Some((now, now.saturating_add(room(host, whole, host.memory.value()?.total_bytes)?)))
}

/// The memory of a node.
fn memory_of(host: &HostFacts, node: u32) -> Option<Bytes> {
    let nodes = host.numa.value()?;
    nodes.iter().find(|known| known.node == node)?.total_bytes.value().copied()
}

/// How many pages more memory holds beside all pools that are there.
fn room(host: &HostFacts, pool: &Pool, memory: Bytes) -> Option<u64> {
    let beside = host.hugepages.value()?.iter().filter(|other| other.node == pool.node);
    let taken =
        beside.map(|other| Some(Bytes(other.total.value()?.saturating_mul(other.size_bytes.0))));
    let taken: Bytes = taken.collect::<Option<Vec<Bytes>>>()?.into_iter().sum();
    let most = Bytes((memory.0 as f64 * POOL_SHARE) as u64);
    (most - taken).0.checked_div(pool.size_bytes.0)
}

/// How many pages the pool should have: those in use, those that databases would take which sit on
/// small ones, and the spare ones, unless the needs of all databases are known: those of others may
/// be what they are for.
fn wanted(case: &Case, pool: &Pool, page: Bytes) -> Option<u64> {
    let suffering: u64 =
        case.concerned().filter_map(|database| missing(case, database, page)).sum();
    if suffering == 0 {
        return None;
    }
    let free = pool.free.value()?.saturating_sub(*pool.reserved.value()?);
    let used = pool.total.value()?.saturating_sub(free);
    let others = || {
        let is_concerned =
            |other: &Database| case.concerned().any(|database| database.id == other.id);
        case.snapshot.databases.iter().filter(move |other| !is_concerned(other))
    };
    let asked: u64 = others()
        .filter(|other| other.huge_pages.value().is_some_and(|asked| asked.asked != "off"))
        .filter_map(|other| missing(case, other, page))
        .fold(0, u64::saturating_add);
    let known = case.snapshot.databases.iter().all(|database| {
        database.traits.pool == PoolUse::Never || case.pages(database, page).is_some()
    });
    let kept = if known { 0 } else { free };
    Some(used.saturating_add(suffering).saturating_add(asked).saturating_add(kept))
}

/// What a database would take that sits on base pages now.
fn missing(case: &Case, database: &Database, page: Bytes) -> Option<u64> {
    let pages = case.pages(database, page)?;
    let base = case.snapshot.host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    (*database.memory.page_size_bytes.value()? <= base).then_some(pages)
}
