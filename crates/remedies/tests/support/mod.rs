//! Checks and snapshots for tests of plans: a host with one PostgreSQL that suffers from small
//! pages, which a test then changes.

#![allow(dead_code, reason = "each test uses a part")]

pub mod hosts;

use untax_core::Reading::{self, Absent, Present};
use untax_core::database::{DatabaseMemory, HugePageUse, Model, Segment};
use untax_core::finding::Severity;
use untax_core::host::{Distribution, HostFacts, Kernel, Memory, NumaNode, Pool};
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

/// A NUMA node with so much memory.
pub fn node_of(node: u32, memory: Bytes) -> NumaNode {
    NumaNode {
        node,
        cpus: Present("0-3".to_owned()),
        total_bytes: Present(memory),
        free_bytes: gap(),
        distances: gap(),
    }
}

/// A host that boots so, with these words on its command line.
pub fn host(id: &str, version: &str, loader: Reading<String>, cmdline: &str) -> HostFacts {
    HostFacts {
        kernel: Present(Kernel {
            release: "6.12.0-100.x86_64".to_owned(),
            arch: "x86_64".to_owned(),
            parameters: Present(cmdline.split_whitespace().map(str::to_owned).collect()),
        }),
        base_page_bytes: Present(Bytes::KIB_4),
        page_sizes_bytes: Present(vec![Bytes::KIB_4, Bytes::MIB_2, Bytes::GIB_1]),
        hugepages: Present(pools(2)),
        numa: Present((0..2).map(|node| node_of(node, Bytes(12 << 30))).collect()),
        memory: Present(Memory {
            available_bytes: Present(Bytes(20 << 30)),
            default_huge_page_bytes: Present(Bytes::MIB_2),
            ..Memory::unknown(Bytes(24 << 30), "not read")
        }),
        distribution: Present(Distribution {
            id: id.to_owned(),
            version: Some(version.to_owned()),
            name: id.to_owned(),
            boot_loader: loader,
        }),
        virtualization: Present("none".to_owned()),
        machine_id: Present("a digest".to_owned()),
        ..HostFacts::unknown("not read")
    }
}

/// A PostgreSQL with so much shared memory on small pages.
pub fn postgres(shared: Bytes) -> Database {
    Database {
        product: "PostgreSQL".to_owned(),
        version: Present("15.8".to_owned()),
        model: Model::Process,
        data_directory: Present("/srv/pg".to_owned()),
        memory: DatabaseMemory {
            shared_bytes: Present(shared),
            page_size_bytes: Present(Bytes::KIB_4),
            resident_bytes: Present(Bytes::from_mib(512)),
            segments: Present(vec![Segment {
                name: "/dev/zero (deleted)".to_owned(),
                bytes: shared,
                shared: true,
                page_size_bytes: Present(Bytes::KIB_4),
            }]),
            ..DatabaseMemory::unknown("not read")
        },
        huge_pages: Present(HugePageUse {
            asked: "try".to_owned(),
            size_bytes: Present(Bytes::MIB_2),
            needed_pages: Present(shared.pages_of(Bytes::MIB_2).unwrap()),
            lengths_bytes: vec![shared],
            source: "shared_memory_size_in_huge_pages".to_owned(),
        }),
        ..Database::unknown("postgres", 4012, "not read")
    }
}

pub fn snapshot(host: HostFacts, databases: Vec<Database>) -> Snapshot {
    Snapshot { databases, ..Snapshot::of_host(jiff::Timestamp::UNIX_EPOCH, 100.0, host) }
}

/// A check that found a rule with this remedy for each database.
pub fn check(snapshot: &Snapshot, rule: &str, remedy: &str) -> Check {
    let finding = Finding {
        remedy: Some(remedy.to_owned()),
        ..Finding::new(rule, Severity::High, "a summary", "a fix")
    };
    let mut check = Check { window_s: 10.0, ..Check::of(snapshot, "a-run", "not read") };
    for database in &mut check.databases {
        database.findings = vec![finding.clone()];
    }
    check
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
