//! The memory, page pools and rights that this machine has for the bench.

use super::options::Page;
use super::transparent;
use std::io;
use untax_changes::{Pool, Tree};
use untax_core::database::{Cgroup, HugetlbLimit};
use untax_core::{Bytes, Reading};

/// Memory, pools and rights, read once before anything is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// What can be allocated without swapping, as the kernel estimates it, or less where our
    /// control group allows less.
    pub available: Bytes,
    /// All memory.
    pub total: Bytes,
    /// The base page.
    pub base_page: Bytes,
    /// Free pages of each pool that this machine has.
    pub pools: Vec<(Page, u64)>,
    /// Pages of each pool that our control group still allows at most, where it limits them.
    pub pool_limits: Vec<(Page, u64)>,
    /// Settings to change for transparent huge pages on shared memory; `None`: impossible here.
    pub transparent_changes: Option<usize>,
    /// Whether pools and settings may be changed.
    pub root: bool,
    /// NUMA nodes with memory.
    pub nodes: usize,
}

impl Capacity {
    /// Reads them. `cgroup` is our own, where it is known.
    pub fn read(tree: &Tree, cgroup: Option<&Cgroup>) -> io::Result<Self> {
        let pools = [Page::Huge, Page::Gigantic].into_iter().filter_map(|page| {
            let free = Pool::find(tree, page.bytes())?.free(tree).ok()?;
            Some((page, free))
        });
        let pool_limits = [Page::Huge, Page::Gigantic]
            .into_iter()
            .filter_map(|page| Some((page, pages_allowed(cgroup?, page.bytes())?)));
        let limit = cgroup.map_or(Ok(None), memory_limit)?;
        let nodes = tree.names("/sys/devices/system/node");
        let is_node = |name: &&String| {
            name.strip_prefix("node").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        };
        Ok(Self {
            available: Bytes(memory(tree, "MemAvailable")?).min(limit.unwrap_or(Bytes(u64::MAX))),
            total: Bytes(memory(tree, "MemTotal")?),
            base_page: Bytes(rustix::param::page_size() as u64),
            pools: pools.collect(),
            pool_limits: pool_limits.collect(),
            transparent_changes: transparent::changes(tree).map(|s| s.len()),
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

    /// Pages that our control group still allows at most; `None` when it does not limit them.
    pub fn allowed_pages(&self, page: Page) -> Option<u64> {
        self.pool_limits.iter().find(|(of, _)| *of == page).map(|(_, allowed)| *allowed)
    }

    /// Free pages of a page's pool; `None` when this machine has no such pages.
    pub fn free_pages(&self, page: Page) -> Option<u64> {
        self.pools.iter().find(|(of, _)| *of == page).map(|(_, free)| *free)
    }
}

/// The memory that a control group and those above it allow; `None` without a limit. One that
/// cannot be read is an error: it may be the lowest.
fn memory_limit(cgroup: &Cgroup) -> io::Result<Option<Bytes>> {
    match &cgroup.memory_limit_bytes {
        Reading::Present(limit) => Ok(Some(*limit)),
        Reading::Absent(_) => Ok(None),
        gap => {
            let why = gap.why().unwrap_or_default();
            Err(io::Error::other(format!("the memory limit of this control group: {why}")))
        }
    }
}

/// Pages of a size that a control group and those above it still allow at most; `None` without a
/// limit. Where it is not known what is in use, that is the whole limit: more they cannot be, and
/// how many they are shows when pages are touched.
fn pages_allowed(cgroup: &Cgroup, size: Bytes) -> Option<u64> {
    let limits = cgroup.hugetlb.value()?.iter().filter(|limit| limit.size_bytes == size);
    let left = |limit: &HugetlbLimit| {
        let both = [&limit.max_bytes, &limit.rsvd_max_bytes].into_iter();
        let lowest = *both.filter_map(|l| l.value()).min()?;
        let left = limit.usage_bytes.value().map_or(lowest, |used| lowest - *used);
        Some(left.0 / size.0)
    };
    limits.filter_map(left).min()
}

/// A line `key: N kB` of `/proc/meminfo`, in bytes.
fn memory(tree: &Tree, key: &str) -> io::Result<u64> {
    let text = tree.text("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kib = line.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.and_then(|kib| kib.checked_mul(1024)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use untax_core::Reading::{Absent, Denied, Failed, Present};

    fn limit(max: Reading<Bytes>, rsvd: Reading<Bytes>, used: u64) -> HugetlbLimit {
        HugetlbLimit {
            cgroup: "/a".to_owned(),
            size_bytes: Bytes::MIB_2,
            max_bytes: max,
            rsvd_max_bytes: rsvd,
            usage_bytes: Present(Bytes(used)),
        }
    }

    fn cgroup(memory: Reading<Bytes>, hugetlb: Vec<HugetlbLimit>) -> Cgroup {
        Cgroup {
            hugetlb: Present(hugetlb),
            memory_limit_bytes: memory,
            ..Cgroup::unknown(BTreeMap::new(), "not read")
        }
    }

    fn none() -> Reading<Bytes> {
        Absent("max".to_owned())
    }

    #[test]
    fn the_tightest_limit_up_the_hierarchy_counts() {
        let cgroup = |limits| cgroup(none(), limits);
        let pages = |n: u64| Present(Bytes(n << 21));
        let limits = vec![limit(pages(100), none(), 0), limit(pages(90), pages(80), 30 << 21)];
        assert_eq!(pages_allowed(&cgroup(limits.clone()), Bytes::MIB_2), Some(50));
        assert_eq!(pages_allowed(&cgroup(limits), Bytes::GIB_1), None);
        assert_eq!(pages_allowed(&cgroup(vec![limit(none(), none(), 7)]), Bytes::MIB_2), None);
        assert_eq!(
            pages_allowed(&cgroup(vec![limit(pages(1), none(), 9 << 21)]), Bytes::MIB_2),
            Some(0)
        );
        let usage_bytes = Denied("usage".to_owned());
        let unread = HugetlbLimit { usage_bytes, ..limit(pages(3), none(), 0) };
        assert_eq!(pages_allowed(&cgroup(vec![unread]), Bytes::MIB_2), Some(3), "no more than it");
    }

    #[test]
    fn a_memory_limit_that_cannot_be_read_is_not_unlimited() {
        let allowed = |memory| memory_limit(&cgroup(memory, Vec::new()));
        assert_eq!(allowed(Present(Bytes::GIB_1)).unwrap(), Some(Bytes::GIB_1));
        assert_eq!(allowed(none()).unwrap(), None);
        let error = allowed(Failed("memory.max has an unexpected form".to_owned())).unwrap_err();
        assert!(error.to_string().contains("could not be read: memory.max"), "{error}");
    }
}
