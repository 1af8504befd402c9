//! Hosts by chance, as they are and as nobody would make them: any sizes of page, nodes without memory,
//! pools that are used, kept or unknown, words at boot in any order, limits above limits, old and unknown
//! versions.

#![allow(dead_code, reason = "each test uses a part")]

use super::gap;
use fastrand::Rng;
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::{
    Cgroup, Container, CpuLimit, DatabaseMemory, HugePageUse, HugetlbLimit, MemoryGroup, Pod,
    Settings,
};
use untax_core::finding::{Severity, Tax};
use untax_core::host::{
    CgroupLayout, CgroupMount, Cpu, Distribution, HostFacts, Kernel, Memory, NumaNode, Pool, Thp,
};
use untax_core::network::{Conntrack, ConntrackLimit};
use untax_core::{Bytes, Check, Database, Finding, Seconds, Snapshot, page_size};
use untax_remedies::{REMEDIES, Wish};

/// Base pages and huge pages: x86-64, arm64 with 4, 16 and 64 KiB, POWER with radix and hash tables, s390x,
/// old x86, and a kernel without pools.
const SIZES: [(u64, &[u64]); 9] = [
    (4 << 10, &[2 << 20, 1 << 30]),
    (4 << 10, &[64 << 10, 2 << 20, 32 << 20, 1 << 30]),
    (16 << 10, &[2 << 20, 32 << 20, 1 << 30]),
    (64 << 10, &[2 << 20, 512 << 20, 16 << 30]),
    (64 << 10, &[2 << 20, 1 << 30]),
    (64 << 10, &[16 << 20, 16 << 30]),
    (4 << 10, &[1 << 20, 2 << 30]),
    (4 << 10, &[4 << 20]),
    (4 << 10, &[]),
];

const KERNELS: [&str; 7] = [
    "3.10.0-1160.el7",
    "4.18.0",
    "5.10.0",
    "5.14.0-427.el9",
    "5.16.1",
    "6.1.0-18",
    "6.12.63-talos",
];

const LOADERS: [(&str, &str); 9] = [
    ("debian", "grub"),
    ("rhel", "grub-bls"),
    ("sles", "grub"),
    ("sl-micro", "transactional"),
    ("bottlerocket", "bottlerocket"),
    ("talos", ""),
    ("nixos", "systemd-boot"),
    ("cos", "grub"),
    ("arch", "systemd-boot"),
];

const VERSIONS: [(&str, &str, &[&str]); 7] = [
    ("postgres", "PostgreSQL", &["9.6.24", "13.16", "14.1", "15.8", "18.0"]),
    ("mysql", "MySQL", &["5.7.44", "8.0.36", "9.7.0"]),
    ("mysql", "MariaDB", &["10.3.39-MariaDB", "10.11.6-MariaDB"]),
    ("redis", "Redis", &["5.0.14", "6.0.16", "6.2.0", "7.2.4"]),
    ("mongodb", "MongoDB", &["4.4.29", "7.0.12", "8.0.3"]),
    ("oracle", "Oracle Database", &["11.2.0.1.0", "12.1.0.2", "19.3.0"]),
    ("generic", "java", &[]),
];

/// A host, what was found on it, and what its user wants.
pub struct Made {
    pub snapshot: Snapshot,
    pub check: Check,
    pub wish: Wish,
}

pub fn made(seed: u64) -> Made {
    let mut rng = Rng::with_seed(seed);
    let rng = &mut rng;
    let (base, sizes) = SIZES[rng.usize(..SIZES.len())];
    let sizes: Vec<Bytes> = sizes.iter().copied().map(Bytes).collect();
    let default = sizes.get(rng.usize(..sizes.len().max(1))).copied();
    let host = host(rng, Bytes(base), &sizes, default);
    let total = host.memory.value().map_or(Bytes(1 << 34), |memory| memory.total_bytes);
    let pods = rng.u32(..5) == 0;
    let kind = Kind { base: Bytes(base), default, total, pods };
    let count = rng.usize(..5);
    let databases = (0..count).map(|n| database(rng, 4000 + n as u32, &kind));
    let databases: Vec<Database> = databases.collect();
    let at = jiff::Timestamp::UNIX_EPOCH;
    let snapshot = Snapshot { databases, ..Snapshot::of_host(at, 100.0, host) };
    let check = check(rng, &snapshot);
    let page = match rng.u32(..4) {
        0 => Some("thp".to_owned()),
        1 => sizes.get(rng.usize(..sizes.len().max(1))).map(|size| page_size::token(*size)),
        _ => None,
    };
    let wish = Wish { only: Vec::new(), configure: rng.bool(), page, ..Wish::default() };
    Made { snapshot, check, wish }
}

/// A reading that is known most of the time.
fn mostly<T>(rng: &mut Rng, value: T) -> Reading<T> {
    if rng.u32(..12) == 0 { gap() } else { Present(value) }
}

fn one_of<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    words[rng.usize(..words.len())]
}

fn host(rng: &mut Rng, base: Bytes, sizes: &[Bytes], default: Option<Bytes>) -> HostFacts {
    let total = Bytes((1 << rng.u32(29..43)) / 7 * rng.u64(4..8));
    let nodes = nodes(rng, total);
    let hugepages = pools(rng, total, &nodes, sizes);
    let (id, loader) = LOADERS[rng.usize(..LOADERS.len())];
    let loader = if loader.is_empty() { gap() } else { Present(loader.to_owned()) };
    let mut known = vec![base];
    known.extend(sizes);
    let available = Bytes((total.0 as f64 * rng.f64()) as u64);
    let memory = Memory {
        available_bytes: mostly(rng, available),
        default_huge_page_bytes: default.map_or_else(gap, |size| mostly(rng, size)),
        ..Memory::unknown(total, "not read")
    };
    let (kernel, thp) = (kernel(rng), thp(rng));
    let cpu = Cpu::unknown(1 << rng.u32(..8), "not read");
    HostFacts {
        kernel: mostly(rng, kernel),
        cpu: mostly(rng, cpu),
        base_page_bytes: Present(base),
        page_sizes_bytes: mostly(rng, known),
        hugepages: mostly(rng, hugepages),
        thp: mostly(rng, thp),
        numa: mostly(rng, nodes),
        memory: mostly(rng, memory),
        distribution: mostly(
            rng,
            Distribution {
                id: id.to_owned(),
                version: Some("1.20".to_owned()),
                name: id.to_owned(),
                boot_loader: loader,
            },
        ),
        virtualization: Present(one_of(rng, &["none", "none", "kvm", "docker on kvm"]).to_owned()),
        cgroup: Present(CgroupLayout {
            mounts: vec![CgroupMount {
                controllers: vec!["unified".to_owned()],
                path: "/sys/fs/cgroup".to_owned(),
                root: "/".to_owned(),
            }],
            memory_hugetlb_accounting: rng.bool(),
        }),
        sysctls: Present(
            [
                ("kernel.numa_balancing", one_of(rng, &["0", "1", "2"])),
                ("vm.dirty_bytes", "0"),
                ("vm.dirty_ratio", "20"),
                ("vm.dirty_background_bytes", "0"),
                ("vm.dirty_background_ratio", "10"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ),
        conntrack: Present(ConntrackLimit {
            most: if rng.bool() { 0 } else { 1 << rng.u32(10..22) },
            table: Conntrack { entries: 7, refused: None },
        }),
        ..HostFacts::unknown("not read")
    }
}

fn kernel(rng: &mut Rng) -> Kernel {
    let words = [
        "quiet",
        "hugepages=16",
        "hugepages=9000",
        "hugepages=0:8,1:8",
        "hugepagesz=2M",
        "hugepagesz=1G",
        "hugepagesz=512M",
        "default_hugepagesz=1G",
        "default_hugepagesz=2M",
        "transparent_hugepage=never",
    ];
    let count = rng.usize(..2) * rng.usize(..6);
    let parameters = (0..count).map(|_| one_of(rng, &words).to_owned()).collect();
    Kernel {
        release: one_of(rng, &KERNELS).to_owned(),
        arch: "an architecture".to_owned(),
        parameters: mostly(rng, parameters),
    }
}

fn thp(rng: &mut Rng) -> Thp {
    let word = one_of(rng, &["always", "within_size", "advise", "never", "deny"]);
    Thp {
        shmem_enabled: mostly(rng, word.to_owned()),
        ..Thp::unknown(one_of(rng, &["always", "madvise", "never"]), "not read")
    }
}

/// Nodes whose memory adds up to the host's; some have none.
fn nodes(rng: &mut Rng, total: Bytes) -> Vec<NumaNode> {
    let weights: Vec<u64> =
        (0..rng.u32(1..6)).map(|_| if rng.u32(..4) == 0 { 0 } else { rng.u64(1..9) }).collect();
    let all = weights.iter().sum::<u64>().max(1);
    let node = |(node, weight): (u32, &u64)| NumaNode {
        node,
        cpus: Present("0-1".to_owned()),
        total_bytes: Present(Bytes(total.0 / all * weight)),
        free_bytes: gap(),
        distances: gap(),
    };
    let mut nodes: Vec<NumaNode> = (0..).zip(&weights).map(node).collect();
    if rng.u32(..12) == 0 {
        nodes[0].total_bytes = gap();
    }
    nodes
}

/// A pool of each size on the host and on each node; together they take less than half of each node.
fn pools(rng: &mut Rng, total: Bytes, nodes: &[NumaNode], sizes: &[Bytes]) -> Vec<Pool> {
    let mut pools = Vec::new();
    for size in sizes {
        let known = rng.u32(..10) > 0;
        let empty = rng.bool();
        let mut on_nodes = Vec::new();
        for node in nodes {
            let memory = node.total_bytes.value().copied().unwrap_or_default();
            let most = memory.0 / 2 / sizes.len() as u64 / size.0;
            let pages = if empty { 0 } else { rng.u64(..=most) };
            on_nodes.push(pool(rng, *size, Some(node.node), pages));
        }
        let sum = |of: fn(&Pool) -> &Reading<u64>| -> u64 {
            on_nodes.iter().filter_map(|pool| of(pool).value()).sum()
        };
        let (pages, free, surplus) = (sum(|p| &p.total), sum(|p| &p.free), sum(|p| &p.surplus));
        pools.push(Pool {
            total: Present(pages),
            free: Present(free),
            surplus: Present(surplus),
            reserved: Present(if rng.bool() { 0 } else { rng.u64(..=free) }),
            ..pool(rng, *size, None, pages)
        });
        if known {
            pools.append(&mut on_nodes);
        } else {
            pools.extend(on_nodes.into_iter().map(|pool| Pool { total: gap(), ..pool }));
        }
    }
    assert!(pools.iter().filter(|p| p.node.is_none()).all(|p| bytes(p) <= total.0));
    pools
}

fn bytes(pool: &Pool) -> u64 {
    pool.total.value().map_or(0, |pages| pages * pool.size_bytes.0)
}

fn pool(rng: &mut Rng, size_bytes: Bytes, node: Option<u32>, pages: u64) -> Pool {
    Pool {
        size_bytes,
        node,
        total: Present(pages),
        free: Present(rng.u64(..=pages)),
        reserved: gap(),
        surplus: Present(if rng.u32(..6) == 0 { pages / 3 } else { 0 }),
    }
}

/// What the databases of a host have in common.
struct Kind {
    base: Bytes,
    default: Option<Bytes>,
    total: Bytes,
    pods: bool,
}

fn database(rng: &mut Rng, pid: u32, kind: &Kind) -> Database {
    let Kind { base, default, total, pods } = *kind;
    let (engine, product, versions) = VERSIONS[rng.usize(..VERSIONS.len())];
    let version = versions.get(rng.usize(..versions.len().max(1))).map(|v| (*v).to_owned());
    let version = version.map_or_else(gap, |version| mostly(rng, version));
    let shared = Bytes((total.0 as f64 * rng.f64() * rng.f64()) as u64 / 2 + (1 << 20));
    let named = rng.u32(..4) == 0;
    let size = match default {
        Some(size) if !named => mostly(rng, size),
        _ => mostly(rng, Bytes(2 << 20)),
    };
    let needed = size.as_ref().and_then(|size| Present(shared.pages_of(*size).unwrap_or(0) + 1));
    let lengths_bytes = if rng.u32(..8) == 0 { Vec::new() } else { vec![shared] };
    let huge_pages = HugePageUse {
        asked: one_of(rng, &["on", "try", "off"]).to_owned(),
        size_bytes: size,
        needed_pages: needed,
        lengths_bytes,
        source: "by chance".to_owned(),
    };
    let pages =
        [("huge_page_size", if named { "2MB" } else { "0" }), ("config_file", "/etc/db.conf")];
    let cgroup = cgroup(rng, pid);
    let page = if rng.u32(..4) > 0 { base } else { Bytes(2 << 20) };
    Database {
        product: product.to_owned(),
        version,
        data_directory: Present("/srv/db".to_owned()),
        container: (rng.u32(..4) == 0)
            .then(|| Container { id: "c".to_owned(), runtime: "runc".to_owned() }),
        pod: (pods && rng.bool()).then(|| Pod { uid: "u".to_owned(), qos: "burstable".to_owned() }),
        cgroup: mostly(rng, cgroup),
        memory: DatabaseMemory {
            shared_bytes: Present(shared),
            page_size_bytes: mostly(rng, page),
            resident_bytes: Present(Bytes(shared.0 / 2)),
            ..DatabaseMemory::unknown("not read")
        },
        huge_pages: mostly(rng, huge_pages),
        settings: mostly(
            rng,
            Settings {
                source: "socket".to_owned(),
                instead_of: String::new(),
                values: pages.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            },
        ),
        ..Database::unknown(engine, pid, "not read")
    }
}

/// Limits on a group and on those above it, in no order.
fn cgroup(rng: &mut Rng, pid: u32) -> Cgroup {
    let groups = [format!("/db.slice/own-{pid}.service"), "/db.slice".to_owned()];
    let some = |rng: &mut Rng| -> Vec<&String> { groups.iter().filter(|_| rng.bool()).collect() };
    let cpu = some(rng).into_iter().map(|group| CpuLimit {
        cgroup: group.clone(),
        cpus: f64::from(rng.u32(1..40)) / 2.0,
        period_s: Seconds(0.1),
        periods: gap(),
        throttled_periods: gap(),
    });
    let cpu: Vec<CpuLimit> = cpu.collect();
    let memory = some(rng).into_iter().map(|group| MemoryGroup {
        max_bytes: if rng.bool() { Present(Bytes(rng.u64(1..64) << 27)) } else { gap() },
        high_bytes: if rng.bool() { Present(Bytes(rng.u64(1..64) << 27)) } else { gap() },
        usage_bytes: Present(Bytes(rng.u64(1..64) << 26)),
        file_bytes: Present(Bytes(1 << 26)),
        shmem_bytes: Present(Bytes(0)),
        ..MemoryGroup::unknown(group, "not read")
    });
    let memory: Vec<MemoryGroup> = memory.collect();
    let limits = groups.iter().flat_map(|group| {
        [2 << 20, 512 << 20, 1 << 30].map(|size| HugetlbLimit {
            cgroup: group.clone(),
            size_bytes: Bytes(size),
            max_bytes: if rng.u32(..3) == 0 {
                Present(Bytes(0))
            } else {
                Absent("unlimited".into())
            },
            rsvd_max_bytes: Absent("unlimited".into()),
            usage_bytes: Present(Bytes(0)),
        })
    });
    let limits: Vec<HugetlbLimit> = limits.collect();
    Cgroup {
        cpu: Present(cpu),
        memory: Present(memory),
        hugetlb: if rng.bool() { Present(limits) } else { gap() },
        ..Cgroup::unknown([("unified".to_owned(), groups[0].clone())].into(), "not read")
    }
}

/// Findings that ask for any remedies, of databases and of the host.
fn check(rng: &mut Rng, snapshot: &Snapshot) -> Check {
    let remedies: Vec<&str> = REMEDIES.iter().flat_map(|remedy| remedy.answers).copied().collect();
    let finding = |rng: &mut Rng| {
        let remedy = if rng.bool() { "hugepage-pool" } else { one_of(rng, &remedies) };
        let rules = ["small-pages", "hugepages-idle", "hugepages-short"];
        let share = rng.f64();
        let method = "by chance".to_owned();
        Finding {
            remedy: Some(remedy.to_owned()),
            tax: rng.bool().then(|| Tax {
                share,
                low: share / 2.0,
                high: share,
                method,
                modelled: false,
            }),
            ..Finding::new(one_of(rng, &rules), Severity::High, "a summary", "a fix")
        }
    };
    let mut check = Check { window_s: 10.0, ..Check::of(snapshot, "a-run", "not read") };
    for database in &mut check.databases {
        database.findings = (0..rng.u32(..3)).map(|_| finding(rng)).collect();
    }
    check.findings = (0..rng.u32(..2)).map(|_| finding(rng)).collect();
    check
}
