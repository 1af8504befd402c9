//! The mappings of one database: how large they are, the pages behind them, page tables.

use crate::database_view::DatabaseView;
use crate::memory::{LARGE, Memory, default_huge_page};
use crate::settings::bytes_of;
use crate::thp;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};
use untax_core::database::Segment;
use untax_core::host::{HostFacts, Pool};
use untax_host::Host;
use untax_host::process::{self, Mapping, Status};

/// The most segments that are reported of one database.
const MOST_SEGMENTS: usize = 16;

/// What the kernel calls shared anonymous memory, and the same on huge pages of a pool.
const SHARED_ANONYMOUS: &str = "/dev/zero";
const POOLED: &str = "/anon_hugepage";

/// Sums over all processes of a database.
pub(crate) struct Mapped {
    pub page_table_bytes: Reading<Bytes>,
    pub mapped_shared_bytes: Reading<Bytes>,
}

/// Reads `maps` of the main process, and `smaps_rollup` where that is cheap.
pub(crate) fn read(view: &DatabaseView, single_process: bool) -> Memory {
    let anon_huge_bytes = if single_process {
        thp::anon_huge(view)
    } else {
        Absent("not read of databases with many processes: it would be read of each".into())
    };
    let private = thp::mapping_page(view, &anon_huge_bytes);
    let segment = |mapping: &Mapping| segment(view, mapping, &private);
    let maps = process::maps(view.host, view.pid());
    let writable = |maps: Vec<Mapping>| {
        let mut kept: Vec<Mapping> = maps.into_iter().filter(|m| m.writable).collect();
        kept.sort_by_key(|m| std::cmp::Reverse(m.bytes));
        kept
    };
    let maps = maps.map(writable);
    let largest_shared = maps.as_ref().and_then(|maps| match maps.iter().find(|m| m.shared) {
        Some(mapping) => Present(segment(mapping)),
        None => Absent("the main process shares no memory".to_owned()),
    });
    let is_pooled = |m: &&Mapping| m.name.starts_with(POOLED);
    let all = maps.value().map(Vec::as_slice).unwrap_or_default();
    let pooled = all.iter().filter(is_pooled).map(|m| m.bytes).collect();
    let segments = maps.map(|maps| {
        let large = maps.iter().take_while(|m| m.bytes >= LARGE).take(MOST_SEGMENTS);
        large.map(segment).collect()
    });
    Memory { segments, anon_huge_bytes, pooled, largest_shared }
}

/// Sums `VmPTE` and `RssShmem` over all processes. Those that ended meanwhile have none.
pub(crate) fn sum_mapped(view: &DatabaseView) -> Mapped {
    let main = view.pid();
    let mut tables = view.status("VmPTE", |s| s.page_tables);
    let mut shared = view.status("RssShmem", |s| s.resident_shared);
    for pid in view.members.iter().copied().filter(|pid| *pid != main) {
        let status = process::status(view.host, pid);
        tables = add(tables, &status, |s| s.page_tables);
        shared = add(shared, &status, |s| s.resident_shared);
    }
    Mapped { page_table_bytes: tables, mapped_shared_bytes: shared }
}

fn add(
    sum: Reading<Bytes>,
    status: &Reading<Status>,
    field: impl Fn(&Status) -> Option<Bytes>,
) -> Reading<Bytes> {
    sum.and_then(|sum| match status {
        Present(status) => Present(sum + field(status).unwrap_or_default()),
        Absent(_) => Present(sum),
        Denied(what) => Denied(what.clone()),
        Failed(why) => Failed(why.clone()),
    })
}

fn segment(view: &DatabaseView, mapping: &Mapping, private: &Reading<Bytes>) -> Segment {
    Segment {
        name: mapping.name.clone(),
        bytes: mapping.bytes,
        shared: mapping.shared,
        page_size_bytes: page_size(view, mapping, private),
    }
}

/// The page size behind a mapping. The filesystem that a mapping belongs to tells it exactly
/// (a `hugetlbfs`, the hidden ones of the kernel included, has blocks of one huge page); only
/// root may ask. Others go by the name.
fn page_size(view: &DatabaseView, mapping: &Mapping, private: &Reading<Bytes>) -> Reading<Bytes> {
    let base = &view.facts.base_page_bytes;
    if mapping.name.is_empty() || mapping.name.starts_with('[') {
        return private.clone();
    }
    let name = mapping.name.trim_end_matches(" (deleted)");
    if name == SHARED_ANONYMOUS {
        return shared_page(view.facts);
    }
    match filesystem(view.host, view.pid(), mapping) {
        Present(Filesystem::HugePages(size)) => Present(size),
        Present(Filesystem::Memory) => shared_page(view.facts),
        Present(Filesystem::Other) => base.clone(),
        _ => page_size_by_name(view, name),
    }
}

/// Shared memory may be in transparent huge pages where the host allows it, and only a walk of
/// the page tables would tell.
fn shared_page(facts: &HostFacts) -> Reading<Bytes> {
    let shmem = facts.thp.value().and_then(|thp| thp.shmem_enabled.value());
    match shmem.map(String::as_str) {
        Some(word @ ("always" | "within_size" | "force")) => Absent(format!(
            "shared memory may be in transparent huge pages here (shmem_enabled is {word})"
        )),
        _ => facts.base_page_bytes.clone(),
    }
}

fn page_size_by_name(view: &DatabaseView, name: &str) -> Reading<Bytes> {
    let faulted = view.status.value().and_then(|s| s.hugetlb).unwrap_or_default();
    // System V segments have the same name on every kind of page; those that were faulted in
    // from a pool show in the process's count.
    let pooled_sysv = name.starts_with("/SYSV") && faulted > Bytes(0);
    if name == POOLED || name.starts_with("/dev/hugepages") || pooled_sysv {
        return pooled_page(view);
    }
    if name.starts_with("/SYSV") || name.starts_with("/dev/shm/") || name.starts_with("/memfd:") {
        return shared_page(view.facts);
    }
    view.facts.base_page_bytes.clone()
}

/// The size of pooled pages, when the mapping cannot be asked: the configured one, or that of the
/// only pool in use, or the kernel's default.
fn pooled_page(view: &DatabaseView) -> Reading<Bytes> {
    let configured = ["huge_page_size", "large_page_size"]
        .iter()
        .find_map(|name| bytes_of(view.setting(name)?, Bytes(1024)))
        .filter(|size| size.0 > 0);
    if let Some(size) = configured {
        return Present(size);
    }
    let in_use = |pool: &&Pool| {
        pool.node.is_none() && pool.total.value().zip(pool.free.value()).is_some_and(|(t, f)| t > f)
    };
    let pools = view.facts.hugepages.value();
    let mut used = pools.into_iter().flatten().filter(in_use);
    match (used.next(), used.next()) {
        (Some(pool), None) => Present(pool.size_bytes),
        _ => default_huge_page(view.host),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Filesystem {
    HugePages(Bytes),
    Memory,
    Other,
}

/// `HUGETLBFS_MAGIC` and `TMPFS_MAGIC` of `linux/magic.h`.
const HUGETLBFS_MAGIC: u32 = 0x9584_58f6;
const TMPFS_MAGIC: u32 = 0x0102_1994;

fn filesystem(host: &Host, pid: u32, mapping: &Mapping) -> Reading<Filesystem> {
    let end = mapping.start.saturating_add(mapping.bytes.0);
    let path = format!("/proc/{pid}/map_files/{:x}-{end:x}", mapping.start);
    host.observe(&format!("filesystem:{path}"), || match rustix::fs::statfs(path.as_str()) {
        Ok(found) if found.f_type as u32 == HUGETLBFS_MAGIC => {
            Present(Filesystem::HugePages(Bytes(found.f_bsize as u64)))
        }
        Ok(found) if found.f_type as u32 == TMPFS_MAGIC => Present(Filesystem::Memory),
        Ok(_) => Present(Filesystem::Other),
        Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => Denied(path.clone()),
        Err(rustix::io::Errno::NOENT) => Absent(format!("{path} does not exist")),
        Err(errno) => Failed(format!("{path}: {errno}")),
    })
}
