//! What this machine has to bench with.

use super::options::Page;
use crate::pools::{self, Pool, Tree};
use std::io;
use untax_core::Bytes;

/// Memory, pools and rights, read once before anything is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Means {
    /// What can be allocated without swapping, as the kernel estimates it.
    pub available: Bytes,
    /// All memory.
    pub total: Bytes,
    /// The base page.
    pub base_page: Bytes,
    /// Free pages of each pool that this machine has.
    pub pools: Vec<(Page, u64)>,
    /// Settings to change for transparent huge pages on shared memory; `None`: impossible here.
    pub transparent_changes: Option<usize>,
    /// Whether pools and settings may be changed.
    pub root: bool,
    /// NUMA nodes with memory.
    pub nodes: usize,
}

impl Means {
    /// Reads them.
    pub fn read(tree: &Tree) -> io::Result<Self> {
        let pools = [Page::Huge, Page::Gigantic].into_iter().filter_map(|page| {
            let free = Pool::find(tree, page.bytes())?.free(tree).ok()?;
            Some((page, free))
        });
        let nodes = tree.names("/sys/devices/system/node");
        let is_node = |name: &&String| {
            name.strip_prefix("node").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        };
        Ok(Self {
            available: Bytes(tree.memory("MemAvailable")?),
            total: Bytes(tree.memory("MemTotal")?),
            base_page: Bytes(rustix::param::page_size() as u64),
            pools: pools.collect(),
            transparent_changes: pools::shared_transparent_settings(tree).map(|s| s.len()),
            root: rustix::process::geteuid().is_root(),
            nodes: nodes.iter().filter(is_node).count().max(1),
        })
    }

    /// What the bench leaves to everyone else: 5 % of all memory, at least 512 MiB.
    pub fn reserve(&self) -> Bytes {
        Bytes((self.total.0 / 20).max(512 << 20))
    }

    /// What the bench may take.
    pub fn budget(&self) -> Bytes {
        self.available - self.reserve()
    }

    /// Free pages of a page's pool; `None` when this machine has no such pages.
    pub fn free_pages(&self, page: Page) -> Option<u64> {
        self.pools.iter().find(|(of, _)| *of == page).map(|(_, free)| *free)
    }
}
