//! How many huge pages the databases of a host need, whether or not they suffer.

use std::collections::BTreeMap;
use untax_core::plan::{Advice, DatabaseSize, NodeSize, Sizing};
use untax_core::{Bytes, Check, Database, Reading, Snapshot};

/// The sizes of huge page that are compared.
pub const SIZES: [(&str, Bytes); 2] = [("2m", Bytes::MIB_2), ("1g", Bytes::GIB_1)];

/// The sizes of all databases, and of the host. `page` is the size that the user chose.
pub fn sizing(check: &Check, snapshot: &Snapshot, page: Option<&str>) -> Sizing {
    let databases: Vec<DatabaseSize> = snapshot.databases.iter().map(of_database).collect();
    let mut huge_pages = BTreeMap::new();
    for (name, _) in SIZES {
        let pages = databases.iter().filter_map(|d| d.huge_pages.value()?.get(name).copied());
        huge_pages.insert(name.to_owned(), pages.fold(0, u64::saturating_add));
    }
    let advice = advice(check, snapshot, page);
    let page = size_of(&advice.page);
    let pages = huge_pages.get(&advice.page).copied().unwrap_or_default();
    let pool = Bytes(pages.saturating_mul(page.0));
    let total_bytes = snapshot.host.memory.clone().map(|memory| memory.total_bytes);
    let nodes = snapshot.host.numa.value().map_or(1, Vec::len).max(1) as u64;
    let per_numa_node =
        (0..nodes).map(|node| pages / nodes + u64::from(node < pages % nodes)).collect();
    let remaining_bytes = total_bytes.clone().map(|total| total - pool);
    let node = NodeSize { huge_pages, advice, per_numa_node, total_bytes, remaining_bytes };
    Sizing { databases, node }
}

/// The bytes of a page by its name.
pub fn size_of(name: &str) -> Bytes {
    SIZES.iter().find(|(known, _)| *known == name).map_or(Bytes::MIB_2, |(_, size)| *size)
}

fn of_database(database: &Database) -> DatabaseSize {
    let mut waste_bytes = BTreeMap::new();
    let huge_pages = database.huge_pages.as_ref().and_then(|use_of| {
        if use_of.lengths_bytes.is_empty() {
            return Reading::Absent("what it maps is not known".to_owned());
        }
        let pages = SIZES.iter().map(|(name, size)| {
            let pages = pages(use_of, *size);
            let whole: Bytes = use_of.lengths_bytes.iter().copied().sum();
            let held = Bytes(pages.saturating_mul(size.0));
            waste_bytes.insert((*name).to_owned(), held - whole);
            ((*name).to_owned(), pages)
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
fn pages(use_of: &untax_core::database::HugePageUse, size: Bytes) -> u64 {
    if use_of.size_bytes.value() == Some(&size)
        && let Reading::Present(told) = use_of.needed_pages
    {
        return told;
    }
    let pages = use_of.lengths_bytes.iter().filter_map(|length| length.pages_of(size));
    pages.fold(0, u64::saturating_add)
}

/// Larger pages are advised where a measurement on this machine says that they bring more; they
/// waste more, can only be had at boot in practice, and no cgroup shares them.
fn advice(check: &Check, snapshot: &Snapshot, page: Option<&str>) -> Advice {
    let gains = check.databases.iter().flat_map(|database| &database.findings);
    let gain = gains.filter(|f| f.rule == "small-pages").find_map(|finding| finding.gain);
    if let Some(page) = page {
        return Advice { page: page.to_owned(), why: "this size was asked for".to_owned(), gain };
    }
    let has_1g = snapshot.host.page_sizes_bytes.value().is_some_and(|s| s.contains(&Bytes::GIB_1));
    let why = match (has_1g, gain.is_some()) {
        (false, _) => "this processor has no 1 GiB pages",
        (true, true) => {
            "the tax of small pages was measured here against 2 MiB pages; untax bench pages \
             --pages 2m,1g says whether 1 GiB pages bring more"
        }
        (true, false) => {
            "2 MiB pages can be had without a reboot and waste less; untax bench pages says what \
             either is worth here"
        }
    };
    Advice { page: "2m".to_owned(), why: why.to_owned(), gain }
}
