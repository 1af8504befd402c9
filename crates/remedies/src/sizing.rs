//! How many huge pages the databases of a host need, whether or not they suffer.

use crate::remedies::directives;
use std::collections::BTreeMap;
use untax_core::database::HugePageUse;
use untax_core::plan::{Advice, DatabaseSize, NodeSize, Sizing};
use untax_core::{Bytes, Check, Database, Reading, Snapshot, page_size};

/// The share of memory that pools may take: the rest is for page tables, work memory and the page
/// cache of everything else.
pub const POOL_SHARE: f64 = 0.9;

/// Larger pages come with a boot: the kernel's lists of free memory end below them, and it finds so
/// much in one piece on a young machine alone.
const BOOT_ONLY: Bytes = Bytes::GIB_1;

/// A page larger than this part of the memory is hardly ever found in one piece while the machine runs.
const RARE_PART: u64 = 512;

/// What the advice names where this host has no huge pages from a pool.
const NONE: &str = "none";

/// The huge pages of this host, ascending: those of its pools, and those that processor and kernel can
/// map.
pub fn sizes(snapshot: &Snapshot) -> Vec<Bytes> {
    let host = &snapshot.host;
    let base = host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    let pools = host.hugepages.value().into_iter().flatten().map(|pool| pool.size_bytes);
    let mapped = host.page_sizes_bytes.value().into_iter().flatten().copied();
    let mut sizes: Vec<Bytes> = pools.chain(mapped).filter(|size| *size > base).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The sizes of all databases, and of the host. `page` is the size that the user chose.
pub fn sizing(check: &Check, snapshot: &Snapshot, page: Option<Bytes>) -> Sizing {
    let sizes = sizes(snapshot);
    let databases: Vec<DatabaseSize> =
        snapshot.databases.iter().map(|database| of_database(database, &sizes)).collect();
    let mut huge_pages = BTreeMap::new();
    for name in sizes.iter().map(|size| page_size::token(*size)) {
        let pages = databases.iter().filter_map(|d| d.huge_pages.value()?.get(&name).copied());
        let pages = pages.fold(0, u64::saturating_add);
        huge_pages.insert(name, pages);
    }
    let advice = advice(check, snapshot, &sizes, page);
    let pages = huge_pages.get(&advice.page).copied().unwrap_or_default();
    let size = page_size::from_token(&advice.page).unwrap_or_default();
    let pool = Bytes(pages.saturating_mul(size.0));
    let total_bytes = snapshot.host.memory.clone().map(|memory| memory.total_bytes);
    let remaining_bytes = total_bytes.clone().map(|total| total - pool);
    let per_numa_node = on_nodes(snapshot, pages);
    let node = NodeSize { huge_pages, advice, per_numa_node, total_bytes, remaining_bytes };
    Sizing { databases, node }
}

/// Pages on each NUMA node in proportion to its memory; all on one where no nodes are known.
fn on_nodes(snapshot: &Snapshot, pages: u64) -> Vec<u64> {
    let nodes = snapshot.host.numa.value().map(Vec::as_slice).unwrap_or_default();
    let memory: Option<Vec<u64>> =
        nodes.iter().map(|node| Some(node.total_bytes.value()?.0)).collect();
    let memory = memory.filter(|memory| memory.iter().any(|bytes| *bytes > 0));
    spread(pages, &memory.unwrap_or_else(|| vec![1]))
}

/// Parts of a number in proportion to these weights, which add up to it: none for what weighs nothing.
pub fn spread(number: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if all == 0 {
        return vec![0; weights.len()];
    }
    let product = |weight: &u64| u128::from(number) * u128::from(*weight);
    let mut parts: Vec<u64> = weights.iter().map(|weight| (product(weight) / all) as u64).collect();
    let mut left = number - parts.iter().sum::<u64>();
    // The largest fractions are rounded up.
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(product(&weights[*at]) % all));
    for at in order {
        let more = left.min(1);
        parts[at] += more;
        left -= more;
    }
    parts
}

fn of_database(database: &Database, sizes: &[Bytes]) -> DatabaseSize {
    let mut waste_bytes = BTreeMap::new();
    let huge_pages = database.huge_pages.as_ref().and_then(|use_of| {
        if use_of.lengths_bytes.is_empty() {
            return Reading::Absent("what it maps is not known".to_owned());
        }
        let pages = sizes.iter().map(|size| {
            let name = page_size::token(*size);
            let pages = pages(use_of, *size);
            let whole: Bytes = use_of.lengths_bytes.iter().copied().sum();
            let held = Bytes(pages.saturating_mul(size.0));
            waste_bytes.insert(name.clone(), held - whole);
            (name, pages)
        });
        Reading::Present(pages.collect())
    });
    DatabaseSize {
        id: database.id.clone(),
        engine: database.engine.clone(),
        huge_pages,
        waste_bytes,
        thp: crate::remedies::thp::wanted(database).map(str::to_owned),
    }
}

/// Pages of one size that hold all that a database maps: what the server says of the size that it
/// will use, else each mapping rounded up by itself.
fn pages(use_of: &HugePageUse, size: Bytes) -> u64 {
    if use_of.size_bytes.value() == Some(&size)
        && let Reading::Present(told) = use_of.needed_pages
    {
        return told;
    }
    let pages = use_of.lengths_bytes.iter().filter_map(|length| length.pages_of(size));
    pages.fold(0, u64::saturating_add)
}

/// Whether pages of a size are found on a machine that runs.
pub fn is_found_running(snapshot: &Snapshot, size: Bytes) -> bool {
    let total = snapshot.host.memory.value().map(|memory| memory.total_bytes);
    size < BOOT_ONLY && total.is_none_or(|total| size.0 <= total.0 / RARE_PART)
}

/// The default size where it can be had without a boot, as programs take it without being told;
/// otherwise the largest below it that can. Where a database cannot name a size, the default alone.
/// Still larger pages waste more; whether they bring more, a measurement says.
fn advice(check: &Check, snapshot: &Snapshot, sizes: &[Bytes], page: Option<Bytes>) -> Advice {
    let gains = check.databases.iter().flat_map(|database| &database.findings);
    let gain = gains.filter(|f| f.rule == "small-pages").find_map(|finding| finding.gain);
    let advice = |size: Option<Bytes>, why: &str| Advice {
        page: size.map_or_else(|| NONE.to_owned(), page_size::token),
        why: why.to_owned(),
        gain,
    };
    if page.is_some() {
        return advice(page, "this size was asked for");
    }
    if sizes.is_empty() {
        return advice(None, "this kernel has no huge pages from a pool, or they are not known");
    }
    let default = snapshot.default_huge_page().filter(|size| sizes.contains(size));
    let running = |size: &Bytes| is_found_running(snapshot, *size);
    if let Some(size) = default
        && sizes.len() == 1
    {
        return advice(Some(size), "this host has no other huge pages");
    }
    if let Some(size) = default
        && !users(check, snapshot).all(directives::names_its_page_size)
    {
        return advice(Some(size), "a database here takes pages of the default size alone");
    }
    if let Some(size) = default.filter(running) {
        let why = "pages of the default size can be had without a reboot and waste less than larger \
                   ones; untax bench pages says what each is worth here";
        return advice(Some(size), why);
    }
    let smaller = sizes.iter().filter(|size| default.is_none_or(|default| **size < default));
    if let Some(size) = smaller.copied().rfind(running) {
        let why = "these can be had without a reboot, unlike larger ones; untax bench pages says what \
                   each is worth here";
        return advice(Some(size), why);
    }
    advice(default.or(sizes.first().copied()), "smaller huge pages are not there")
}

/// The databases that a pool is for: those that suffer without, else all that could use one.
fn users<'a>(check: &'a Check, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Database> {
    let suffers = |database: &&Database| {
        let of = |checked: &&untax_core::check::Checked| checked.id == database.id;
        let findings = check.databases.iter().filter(of).flat_map(|checked| &checked.findings);
        let mut remedies = findings.filter_map(|finding| finding.remedy.as_deref());
        remedies.any(|remedy| remedy == "hugepage-pool")
    };
    let any = snapshot.databases.iter().any(|database| suffers(&database));
    let uses = move |database: &&Database| database.huge_pages.is_present();
    snapshot.databases.iter().filter(move |d| if any { suffers(d) } else { uses(d) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_proportion_and_add_up() {
        assert_eq!(spread(8392, &[0, 67_430_776_832, 67_603_791_872, 0]), [0, 4191, 4201, 0]);
        assert_eq!(spread(5, &[1, 1]), [3, 2]);
        assert_eq!(spread(5, &[0, 0]), [0, 0]);
        assert_eq!(spread(u64::MAX, &[u64::MAX, 1]).iter().sum::<u64>(), u64::MAX);
    }
}
