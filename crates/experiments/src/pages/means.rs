//! What this machine has to bench with.

use super::options::Page;
use crate::pools::{self, Pool, Tree};
use std::io;
use untax_core::Bytes;
use untax_core::database::{Cgroup, HugetlbLimit};

/// Memory, pools and rights, read once before anything is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Means {
    /// What can be allocated without swapping, as the kernel estimates it, or less where our
    /// control group allows less.
    pub available: Bytes,
    /// All memory.
    pub total: Bytes,
    /// The base page.
    pub base_page: Bytes,
    /// Free pages of each pool that this machine has.
    pub pools: Vec<(Page, u64)>,
    /// Pages of each pool that our control group still allows, where it limits them.
    pub pool_limits: Vec<(Page, u64)>,
    /// Settings to change for transparent huge pages on shared memory; `None`: impossible here.
    pub transparent_changes: Option<usize>,
    /// Whether pools and settings may be changed.
    pub root: bool,
    /// NUMA nodes with memory.
    pub nodes: usize,
}

impl Means {
    /// Reads them. `cgroup` is our own, where it is known.
    pub fn read(tree: &Tree, cgroup: Option<&Cgroup>) -> io::Result<Self> {
        let pools = [Page::Huge, Page::Gigantic].into_iter().filter_map(|page| {
            let free = Pool::find(tree, page.bytes())?.free(tree).ok()?;
            Some((page, free))
        });
        let pool_limits = [Page::Huge, Page::Gigantic]
            .into_iter()
            .filter_map(|page| Some((page, pages_allowed(cgroup?, page.bytes())?)));
        let limit = cgroup.and_then(|cgroup| cgroup.memory_limit_bytes.value().copied());
        let nodes = tree.names("/sys/devices/system/node");
        let is_node = |name: &&String| {
            name.strip_prefix("node").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        };
        Ok(Self {
            available: Bytes(tree.memory("MemAvailable")?).min(limit.unwrap_or(Bytes(u64::MAX))),
            total: Bytes(tree.memory("MemTotal")?),
            base_page: Bytes(rustix::param::page_size() as u64),
            pools: pools.collect(),
            pool_limits: pool_limits.collect(),
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

    /// Pages that our control group still allows; `None` when it does not limit them.
    pub fn allowed_pages(&self, page: Page) -> Option<u64> {
        self.pool_limits.iter().find(|(of, _)| *of == page).map(|(_, allowed)| *allowed)
    }

    /// Free pages of a page's pool; `None` when this machine has no such pages.
    pub fn free_pages(&self, page: Page) -> Option<u64> {
        self.pools.iter().find(|(of, _)| *of == page).map(|(_, free)| *free)
    }
}

/// Pages of a size that a control group and those above it still allow; `None` without a limit.
fn pages_allowed(cgroup: &Cgroup, size: Bytes) -> Option<u64> {
    let limits = cgroup.hugetlb.value()?.iter().filter(|limit| limit.size_bytes == size);
    let left = |limit: &HugetlbLimit| {
        let used = limit.usage_bytes.value().copied().unwrap_or_default();
        let lowest =
            [&limit.max_bytes, &limit.rsvd_max_bytes].into_iter().filter_map(|l| l.value());
        lowest.min().map(|lowest| (*lowest - used).0 / size.0)
    };
    limits.filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use untax_core::Reading::{self, Absent, Present};

    fn limit(max: Reading<Bytes>, rsvd: Reading<Bytes>, used: u64) -> HugetlbLimit {
        HugetlbLimit {
            cgroup: "/a".to_owned(),
            size_bytes: Bytes::MIB_2,
            max_bytes: max,
            rsvd_max_bytes: rsvd,
            usage_bytes: Present(Bytes(used)),
        }
    }

    #[test]
    fn the_tightest_limit_up_the_hierarchy_counts() {
        let none = || Absent("max".to_owned());
        let cgroup = |limits| Cgroup {
            paths: BTreeMap::new(),
            hugetlb: Present(limits),
            memory_limit_bytes: none(),
            cpu: Absent("not read".to_owned()),
            memory: Absent("not read".to_owned()),
            io: Absent("not read".to_owned()),
        };
        let pages = |n: u64| Present(Bytes(n << 21));
        let limits = vec![limit(pages(100), none(), 0), limit(pages(90), pages(80), 30 << 21)];
        assert_eq!(pages_allowed(&cgroup(limits.clone()), Bytes::MIB_2), Some(50));
        assert_eq!(pages_allowed(&cgroup(limits), Bytes::GIB_1), None);
        assert_eq!(pages_allowed(&cgroup(vec![limit(none(), none(), 7)]), Bytes::MIB_2), None);
        assert_eq!(
            pages_allowed(&cgroup(vec![limit(pages(1), none(), 9 << 21)]), Bytes::MIB_2),
            Some(0)
        );
    }
}
