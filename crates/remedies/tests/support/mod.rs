//! Checks and snapshots for tests of plans: a host with one PostgreSQL that suffers from small
//! pages, which a test then changes.

#![allow(dead_code, reason = "each test uses a part")]

use untax_core::Reading::{self, Absent, Present};
use untax_core::check::{Checked, TimeShares};
use untax_core::database::{
    Cgroup, Counters, DatabaseMemory, HugePageUse, Model, Segment, Settings,
};
use untax_core::finding::Severity;
use untax_core::host::{Distribution, HostFacts, Kernel, Memory, Pool};
use untax_core::plan::{Plan, Target};
use untax_core::{Bytes, Check, Database, Finding, Snapshot};
use untax_remedies::Wish;

pub fn gap<T>() -> Reading<T> {
    Absent("not read".to_owned())
}

/// An empty pool of each size, on the host and on each of so many nodes.
pub fn pools(nodes: u32) -> Vec<Pool> {
    let places = || std::iter::once(None).chain((0..nodes).map(Some));
    let pool = |size_bytes, node: Option<u32>| Pool {
        size_bytes,
        node,
        total: Present(0),
        free: Present(0),
        reserved: if node.is_none() { Present(0) } else { gap() },
        surplus: Present(0),
    };
    [Bytes::MIB_2, Bytes::GIB_1]
        .into_iter()
        .flat_map(|size| places().map(move |node| pool(size, node)))
        .collect()
}

/// A host that boots so, with these words on its command line.
pub fn host(id: &str, version: &str, loader: Reading<String>, cmdline: &str) -> HostFacts {
    HostFacts {
        kernel: Present(Kernel {
            release: "6.12.0-100.x86_64".to_owned(),
            arch: "x86_64".to_owned(),
            parameters: Present(cmdline.split_whitespace().map(str::to_owned).collect()),
        }),
        cpu: gap(),
        tlb: gap(),
        base_page_bytes: Present(Bytes::KIB_4),
        page_sizes_bytes: Present(vec![Bytes::KIB_4, Bytes::MIB_2, Bytes::GIB_1]),
        hugepages: Present(pools(2)),
        thp: gap(),
        numa: gap(),
        memory: Present(Memory {
            total_bytes: Bytes(24 << 30),
            available_bytes: Present(Bytes(20 << 30)),
            free_bytes: gap(),
            page_table_bytes: gap(),
            anon_huge_bytes: gap(),
            shmem_huge_bytes: gap(),
            hugetlb_bytes: gap(),
            swap_total_bytes: gap(),
        }),
        distribution: Present(Distribution {
            id: id.to_owned(),
            version: Some(version.to_owned()),
            name: id.to_owned(),
            boot_loader: loader,
        }),
        virtualization: Present("none".to_owned()),
        cgroup_version: gap(),
        cgroup: gap(),
        cpu_time: gap(),
        each_cpu_time: gap(),
        machine_id: Present("a digest".to_owned()),
        vm_counts: gap(),
        pressure: gap(),
        links: gap(),
        conntrack: gap(),
        product_uuid: gap(),
        sandbox: gap(),
        sysctls: gap(),
    }
}

/// A PostgreSQL with so much shared memory on small pages.
pub fn postgres(shared: Bytes) -> Database {
    Database {
        id: "postgres:4012".to_owned(),
        engine: "postgres".to_owned(),
        product: "PostgreSQL".to_owned(),
        version: Present("15.8".to_owned()),
        pid: 4012,
        started_ticks: gap(),
        executable: gap(),
        executable_deleted: gap(),
        uid: gap(),
        namespace_pid: None,
        model: Model::Process,
        pids: vec![4012],
        threads: gap(),
        connections: gap(),
        container: None,
        pod: None,
        cgroup: no_groups(),
        data_directory: Present("/srv/pg".to_owned()),
        memory: DatabaseMemory {
            shared_bytes: Present(shared),
            page_size_bytes: Present(Bytes::KIB_4),
            page_table_bytes: gap(),
            mapped_shared_bytes: gap(),
            resident_bytes: Present(Bytes::from_mib(512)),
            hugetlb_bytes: gap(),
            anon_huge_bytes: gap(),
            thp_allowed: gap(),
            segments: Present(vec![Segment {
                name: "/dev/zero (deleted)".to_owned(),
                bytes: shared,
                shared: true,
                page_size_bytes: Present(Bytes::KIB_4),
            }]),
        },
        huge_pages: Present(HugePageUse {
            asked: "try".to_owned(),
            size_bytes: Present(Bytes::MIB_2),
            needed_pages: Present(shared.pages_of(Bytes::MIB_2).unwrap()),
            lengths_bytes: vec![shared],
            source: "shared_memory_size_in_huge_pages".to_owned(),
        }),
        settings: no_settings(),
        network: gap(),
        allowed_cpus: gap(),
        placement: gap(),
        machine_id: gap(),
        counters: Counters {
            on_cpu_s: gap(),
            runnable_s: gap(),
            system_s: gap(),
            minor_faults: gap(),
            minor_faults_living: gap(),
            major_faults: gap(),
            tcp: gap(),
            accesses: gap(),
            told: gap(),
        },
    }
}

fn no_groups() -> Reading<Cgroup> {
    gap()
}

fn no_settings() -> Reading<Settings> {
    gap()
}

pub fn snapshot(host: HostFacts, databases: Vec<Database>) -> Snapshot {
    Snapshot {
        taken_at: jiff::Timestamp::UNIX_EPOCH,
        uptime_s: 100.0,
        host,
        databases,
        processes: Vec::new(),
        kernel_workers: Vec::new(),
        groups: gap(),
        sandboxes: Vec::new(),
    }
}

/// A check that found a rule with this remedy for each database.
pub fn check(snapshot: &Snapshot, rule: &str, remedy: &str) -> Check {
    let finding = Finding {
        rule: rule.to_owned(),
        severity: Severity::High,
        summary: "a summary".to_owned(),
        fix: "a fix".to_owned(),
        evidence: Vec::new(),
        tax: None,
        gain: None,
        remedy: Some(remedy.to_owned()),
    };
    Check {
        schema: untax_core::check::SCHEMA.to_owned(),
        run: "a-run".to_owned(),
        taken_at: snapshot.taken_at,
        window_s: 10.0,
        own: gap(),
        host: snapshot.host.clone(),
        calibration: gap(),
        io: gap(),
        databases: snapshot.databases.iter().map(|d| checked(d, &finding)).collect(),
        findings: Vec::new(),
        unmeasured: Vec::new(),
    }
}

fn checked(database: &Database, finding: &Finding) -> Checked {
    Checked {
        id: database.id.clone(),
        engine: database.engine.clone(),
        product: database.product.clone(),
        version: database.version.clone(),
        pid: database.pid,
        model: database.model,
        processes: database.processes(),
        connections: gap(),
        container: None,
        pod: database.pod.clone(),
        data_directory: database.data_directory.clone(),
        memory: database.memory.clone(),
        huge_pages: database.huge_pages.clone(),
        settings: gap(),
        time: TimeShares {
            active_s: gap(),
            on_cpu_s: gap(),
            minor_faults_s: gap(),
            runnable_s: gap(),
            throttled_s: gap(),
            disk_s: gap(),
            reclaim_s: gap(),
            lock_s: gap(),
            network_s: gap(),
            idle_s: gap(),
            unaccounted_s: gap(),
        },
        pressure: gap(),
        tax: None,
        findings: vec![finding.clone()],
        unmeasured: Vec::new(),
    }
}

/// The plan against small pages, with pages of this size.
pub fn plan(snapshot: &Snapshot, page: &str) -> Plan {
    let wish = Wish { page: Some(page.to_owned()), ..Wish::default() };
    let check = check(snapshot, "small-pages", "hugepage-pool");
    untax_remedies::plan("a-plan".to_owned(), &check, snapshot, &wish).unwrap()
}

/// What a plan does about one remedy, as people read it.
pub fn shown(plan: &Plan, remedy: &str) -> String {
    let mut text = String::new();
    for step in plan.steps.iter().filter(|step| step.remedy == remedy) {
        text += &format!("step {}\n", step.summary);
        text += &format!("target {}\n", place(&step.target));
        text += &format!("from {}\n", step.from.as_deref().unwrap_or("(nothing)"));
        text += &format!("to\n{}\n", step.to.as_deref().unwrap_or("(nothing)").trim_end());
        if !step.refresh.is_empty() {
            text += &format!("then {:?}\n", step.refresh);
        }
    }
    for task in plan.tasks.iter().filter(|task| task.remedy == remedy) {
        text += &format!("task {}\n", task.summary);
        if let Some((name, lines)) = &task.file {
            text += &format!("file {name}\n{}\n", lines.trim_end());
        }
    }
    for warning in plan.warnings.iter().filter(|warning| warning.id.starts_with("boot-")) {
        text += &format!("warning {}\n", warning.text);
    }
    text
}

fn place(target: &Target) -> String {
    match target {
        Target::File { file } => format!("file {file}"),
        Target::Block { file } => format!("block in {file}"),
        other => format!("{other:?}"),
    }
}
