//! A host: two CPUs of an Ice Lake guest.

use untax_core::Reading::{Absent, Denied, Failed, Present};
use untax_core::host::{
    CgroupLayout, CgroupMount, Cpu, CpuTime, Distribution, HostFacts, Kernel, Memory, NumaNode,
    Pool, Thp, Tlb,
};
use untax_core::{Bytes, Seconds};

pub fn host() -> HostFacts {
    HostFacts {
        kernel: Present(Kernel {
            release: "6.1.0-18-amd64".into(),
            arch: "x86_64".into(),
            parameters: Present(vec!["transparent_hugepage=always".into()]),
        }),
        cpu: Present(Cpu {
            vendor: "GenuineIntel".into(),
            model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz".into(),
            logical: 2,
            cores: Present(1),
            sockets: Present(1),
            last_level_cache_bytes: Present(Bytes::from_mib(48)),
            pmu: Absent("the hypervisor exposes none".into()),
        }),
        tlb: Present(tlb()),
        base_page_bytes: Present(Bytes::KIB_4),
        page_sizes_bytes: Present(vec![Bytes::KIB_4, Bytes::MIB_2, Bytes::GIB_1]),
        hugepages: Present(pools()),
        thp: Present(thp()),
        numa: Present(vec![NumaNode {
            node: 0,
            cpus: Present("0-1".into()),
            total_bytes: Present(Bytes::from_mib(24_000)),
            free_bytes: Present(Bytes::from_mib(9000)),
            distances: Present(vec![10]),
        }]),
        memory: Present(memory()),
        distribution: Present(Distribution {
            id: "debian".into(),
            version: Some("12".into()),
            name: "Debian GNU/Linux 12 (bookworm)".into(),
            boot_loader: Failed("no known boot loader configuration found".into()),
        }),
        virtualization: Present("kvm".into()),
        cgroup_version: Present("v2".into()),
        cgroup: Present(CgroupLayout {
            mounts: vec![CgroupMount {
                controllers: vec!["unified".into()],
                path: "/sys/fs/cgroup".into(),
                root: "/".into(),
            }],
            memory_hugetlb_accounting: false,
        }),
        cpu_time: Present(CpuTime {
            busy_s: Seconds(1000.0),
            interrupts_s: Some(Seconds(0.0)),
            idle_s: Seconds(9000.0),
            steal_s: Seconds(0.0),
        }),
        sandbox: Present("none".into()),
        ..HostFacts::unknown("not read")
    }
}

fn tlb() -> Vec<Tlb> {
    let entry = |level, kind: &str, pages: &[Bytes], entries| Tlb {
        level,
        kind: kind.into(),
        page_sizes_bytes: pages.into(),
        entries,
        ways: Some(8),
    };
    vec![
        entry(1, "data", &[Bytes::KIB_4], 64),
        entry(1, "data", &[Bytes::MIB_2], 32),
        entry(2, "unified", &[Bytes::KIB_4, Bytes::MIB_2], 1024),
        entry(2, "unified", &[Bytes::KIB_4, Bytes::GIB_1], 1024),
    ]
}

fn pools() -> Vec<Pool> {
    let pool = |size_bytes, node, total| Pool {
        size_bytes,
        node,
        total: Present(total),
        free: Present(total),
        reserved: if node.is_none() { Present(0) } else { Absent("host only".into()) },
        surplus: Present(0),
    };
    vec![
        pool(Bytes::MIB_2, None, 512),
        pool(Bytes::GIB_1, None, 0),
        pool(Bytes::MIB_2, Some(0), 512),
        pool(Bytes::GIB_1, Some(0), 0),
    ]
}

fn thp() -> Thp {
    Thp {
        enabled: "always".into(),
        defrag: Present("madvise".into()),
        shmem_enabled: Present("never".into()),
        pmd_bytes: Present(Bytes::MIB_2),
        sizes: Absent("kernels before 6.8 have one size".into()),
        khugepaged_defrag: Present(true),
        khugepaged_pages_to_scan: Present(4096),
        khugepaged_max_ptes_none: Denied("/sys/kernel/mm/transparent_hugepage".into()),
    }
}

fn memory() -> Memory {
    Memory {
        total_bytes: Bytes::from_mib(24_064),
        available_bytes: Present(Bytes::from_mib(15_000)),
        free_bytes: Present(Bytes::from_mib(9000)),
        page_table_bytes: Present(Bytes::from_mib(561)),
        anon_huge_bytes: Present(Bytes::from_mib(88)),
        shmem_huge_bytes: Present(Bytes(0)),
        hugetlb_bytes: Present(Bytes::GIB_1),
        default_huge_page_bytes: Present(Bytes::MIB_2),
        swap_total_bytes: Present(Bytes(0)),
    }
}
