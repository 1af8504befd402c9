//! Pools of hosts that are not like the one at hand: other pages, another default, nodes without memory,
//! databases whose need is not known, hosts without files to write. No plan takes anything away.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, gap, host, node_of, postgres, snapshot};
use untax_core::Reading::{Absent, Present};
use untax_core::database::{Cgroup, HugePageUse, HugetlbLimit};
use untax_core::host::{HostFacts, Pool, Thp};
use untax_core::plan::{Plan, Target};
use untax_core::{Bytes, Check, Database, Finding, Severity, Snapshot};
use untax_remedies::Wish;

const GIB: u64 = 1 << 30;

fn pool(size: Bytes, node: Option<u32>, pages: u64) -> Pool {
    Pool {
        size_bytes: size,
        node,
        total: Present(pages),
        free: Present(pages),
        reserved: if node.is_none() { Present(0) } else { gap() },
        surplus: Present(0),
    }
}

/// A host with these pages, the first of them the default, and so much memory.
fn host_of(base: Bytes, sizes: &[Bytes], total: Bytes) -> HostFacts {
    let mut host = host("rhel", "9.4", Present("grub-bls".to_owned()), "");
    host.base_page_bytes = Present(base);
    host.page_sizes_bytes = Present([&[base], sizes].concat());
    host.hugepages = Present(sizes.iter().map(|size| pool(*size, None, 0)).collect());
    let Present(memory) = &mut host.memory else { unreachable!() };
    memory.total_bytes = total;
    memory.available_bytes = Present(Bytes(total.0 / 4 * 3));
    memory.default_huge_page_bytes = Present(sizes[0]);
    host
}

/// PostgreSQL on base pages, which takes the default of its host.
fn server(shared: Bytes, host: &HostFacts) -> Database {
    let default = host.memory.value().unwrap().default_huge_page_bytes.clone();
    let mut database = postgres(shared);
    database.memory.page_size_bytes = host.base_page_bytes.clone();
    let Present(asked) = &mut database.huge_pages else { unreachable!() };
    asked.needed_pages = Present(shared.pages_of(*default.value().unwrap()).unwrap());
    asked.size_bytes = default;
    database
}

fn plan_of(snapshot: &Snapshot, page: Option<&str>) -> Plan {
    let wish = Wish { page: page.map(str::to_owned), ..Wish::default() };
    let check = check(snapshot, "small-pages", "hugepage-pool");
    untax_remedies::plan("a-plan".to_owned(), &check, snapshot, &wish).unwrap()
}

/// The pools that a plan changes, and what it writes for every boot.
fn pools(plan: &Plan) -> Vec<String> {
    let steps = plan.steps.iter().filter_map(|step| match &step.target {
        Target::Pool { .. } => Some(step.summary.clone()),
        _ => None,
    });
    steps.collect()
}

fn boot(plan: &Plan) -> String {
    let steps = plan.steps.iter().filter(|step| step.remedy == "hugepage-boot");
    let steps = steps.filter_map(|step| step.to.clone());
    let tasks = plan.tasks.iter().filter(|task| task.remedy == "hugepage-boot");
    steps.chain(tasks.filter_map(|task| Some(task.file.clone()?.1))).collect()
}

fn config(plan: &Plan) -> String {
    let tasks = plan.tasks.iter().filter(|task| task.remedy == "database-config");
    tasks.filter_map(|task| Some(task.file.clone()?.1)).collect()
}

#[test]
fn on_64_kib_pages_a_count_names_its_size() {
    let sizes = [Bytes::from_mib(512), Bytes::MIB_2, Bytes(16 * GIB)];
    let host = host_of(Bytes::from_kib(64), &sizes, Bytes(96 * GIB));
    let server = server(Bytes::from_mib(9001), &host);
    let snapshot = snapshot(host, vec![server]);
    let small = plan_of(&snapshot, None);
    assert_eq!(pools(&small), ["pool of 2 MiB pages: 0 -> 4501"]);
    assert_eq!(boot(&small), "hugepagesz=2M hugepages=4501");
    assert!(
        config(&small).ends_with("huge_pages = on\nhuge_page_size = 2MB\n"),
        "{}",
        config(&small)
    );
    let sizing = &small.sizing.databases[0].huge_pages;
    assert_eq!(sizing.value().unwrap()["512m"], 18);

    let large = plan_of(&snapshot, Some("512m"));
    assert!(boot(&large).ends_with("vm.nr_hugepages = 18\n"), "{}", boot(&large));
    assert!(
        config(&large).ends_with("huge_pages = on\n"),
        "it takes the default: {}",
        config(&large)
    );
    let wish = Wish { page: Some("1g".to_owned()), ..Wish::default() };
    let check = check(&snapshot, "small-pages", "hugepage-pool");
    let error = untax_remedies::plan("a".to_owned(), &check, &snapshot, &wish).unwrap_err();
    let said = "1g is no size of huge page of this host; it has 2m, 512m, 16g, thp";
    assert_eq!(error.to_string(), said);
}

#[test]
fn an_older_capture_tells_the_default_by_what_a_database_takes() {
    let sizes = [Bytes::from_mib(512), Bytes::MIB_2];
    let mut host = host_of(Bytes::from_kib(64), &sizes, Bytes(96 * GIB));
    let mut database = server(Bytes::from_mib(9001), &host);
    let Present(memory) = &mut host.memory else { unreachable!() };
    memory.default_huge_page_bytes = Absent("not captured".to_owned());
    let unknown = plan_of(&snapshot(host.clone(), vec![database.clone()]), Some("512m"));
    assert!(!boot(&unknown).contains("vm.nr_hugepages"), "of which size is not known");
    database.settings = Present(untax_core::database::Settings {
        source: "socket".to_owned(),
        instead_of: String::new(),
        values: [("huge_page_size".to_owned(), "0".to_owned())].into(),
    });
    let known = plan_of(&snapshot(host, vec![database]), Some("512m"));
    assert!(boot(&known).ends_with("vm.nr_hugepages = 18\n"), "{}", boot(&known));
}

#[test]
fn where_the_default_comes_at_boot_alone_a_smaller_page_is_named() {
    let host = host_of(Bytes::KIB_4, &[Bytes::GIB_1, Bytes::MIB_2], Bytes(96 * GIB));
    let server = server(Bytes::from_mib(9001), &host);
    let plan = plan_of(&snapshot(host, vec![server]), None);
    assert_eq!(pools(&plan), ["pool of 2 MiB pages: 0 -> 4501"]);
    assert_eq!(boot(&plan), "hugepagesz=2M hugepages=4501");
    assert!(config(&plan).contains("huge_page_size = 2MB"));
}

#[test]
fn a_database_that_cannot_name_a_size_takes_the_default() {
    let sizes = [Bytes::from_mib(512), Bytes::MIB_2];
    let host = host_of(Bytes::from_kib(64), &sizes, Bytes(96 * GIB));
    let mut server = server(Bytes::from_mib(9001), &host);
    for version in [Present("13.16".to_owned()), gap()] {
        server.version = version;
        let plan = plan_of(&snapshot(host.clone(), vec![server.clone()]), None);
        assert_eq!(plan.sizing.node.advice.page, "512m");
        assert!(!config(&plan).contains("huge_page_size"), "{}", config(&plan));
    }
}

#[test]
fn the_default_size_of_a_pool_that_is_used_stays() {
    let mut host = host_of(Bytes::KIB_4, &[Bytes::MIB_2, Bytes::GIB_1], Bytes(96 * GIB));
    let mut server = server(Bytes::from_mib(9001), &host);
    server.version = Present("13.16".to_owned());
    let refused = |host: &HostFacts| {
        let plan = plan_of(&snapshot(host.clone(), vec![server.clone()]), Some("1g"));
        let refusals = plan.warnings.iter().filter(|w| w.refuses).count();
        (refusals, boot(&plan).contains("default_hugepagesz=1G"))
    };
    assert_eq!(refused(&host), (0, true));
    let Present(pools) = &mut host.hugepages else { unreachable!() };
    pools[0] = pool(Bytes::MIB_2, None, 7);
    assert_eq!(refused(&host), (1, false), "those 7 pages are somebody's");
}

/// Nodes with so much memory each.
fn with_nodes(mut host: HostFacts, memory: &[u64]) -> HostFacts {
    let node = |(node, mib): (u32, &u64)| node_of(node, Bytes::from_mib(*mib));
    host.numa = Present((0..).zip(memory).map(node).collect());
    let Present(pools) = &mut host.hugepages else { unreachable!() };
    pools.extend((0..memory.len()).map(|node| pool(Bytes::MIB_2, Some(node as u32), 0)));
    host
}

#[test]
fn nodes_without_memory_get_no_pages() {
    let host = host_of(Bytes::KIB_4, &[Bytes::MIB_2], Bytes(60 * GIB));
    let host = with_nodes(host, &[0, 30 << 10, 29 << 10, 0, 0]);
    let server = server(Bytes::from_mib(5900), &host);
    let plan = plan_of(&snapshot(host, vec![server]), None);
    let expected =
        ["pool of 2 MiB pages on node 1: 0 -> 1500", "pool of 2 MiB pages on node 2: 0 -> 1450"];
    assert_eq!(pools(&plan), expected);
    assert_eq!(plan.sizing.node.per_numa_node, [0, 1500, 1450, 0, 0]);
    assert!(boot(&plan).ends_with("vm.nr_hugepages = 2950\n"), "the kernel spreads them so");
}

#[test]
fn nodes_that_are_unlike_are_told_apart_at_boot() {
    let host = host_of(Bytes::KIB_4, &[Bytes::MIB_2], Bytes(60 * GIB));
    let host = with_nodes(host, &[40 << 10, 20 << 10]);
    let server = server(Bytes::from_mib(6000), &host);
    let plan = plan_of(&snapshot(host, vec![server]), None);
    assert_eq!(boot(&plan), "hugepagesz=2M hugepages=0:2000,1:1000");
}

/// Oracle on small pages beside 3000 free pages that were reserved for it.
fn oracle(huge_pages: untax_core::Reading<HugePageUse>) -> (HostFacts, Database) {
    let mut host = host_of(Bytes::KIB_4, &[Bytes::MIB_2, Bytes::GIB_1], Bytes(60 * GIB));
    let Present(pools) = &mut host.hugepages else { unreachable!() };
    pools[0] = pool(Bytes::MIB_2, None, 3000);
    let database = Database {
        product: "Oracle Database".to_owned(),
        version: Present("19.3.0".to_owned()),
        huge_pages,
        ..Database::unknown("oracle", 77, "not read")
    };
    let memory = postgres(Bytes::from_mib(5800)).memory;
    (host, Database { memory, ..database })
}

fn idle() -> Finding {
    Finding {
        remedy: Some("hugepage-pool".to_owned()),
        ..Finding::new("hugepages-idle", Severity::Low, "3000 idle pages", "a fix")
    }
}

#[test]
fn a_pool_that_somebody_may_want_is_kept() {
    let known = HugePageUse {
        asked: "try".to_owned(),
        size_bytes: Present(Bytes::MIB_2),
        needed_pages: Present(2901),
        lengths_bytes: vec![Bytes::from_mib(5800)],
        source: "segments".to_owned(),
    };
    let unknown = Absent("nothing is asked".to_owned());
    for huge_pages in [Present(known), unknown] {
        let (host, database) = oracle(huge_pages);
        let snapshot = snapshot(host, vec![database]);
        let mut check: Check = check(&snapshot, "small-pages", "hugepage-pool");
        check.findings = vec![idle()];
        let wish = Wish::default();
        let plan = untax_remedies::plan("a".to_owned(), &check, &snapshot, &wish).unwrap();
        assert_eq!(plan.steps, [], "nothing is set");
        let tasks: Vec<_> = plan.tasks.iter().map(|task| task.summary.as_str()).collect();
        assert!(
            tasks.iter().any(|task| task.starts_with("3000 idle pages: keep them")),
            "{tasks:?}"
        );
        let oracle = tasks.iter().find(|task| task.starts_with("Oracle")).unwrap();
        assert!(oracle.contains("memlock") && oracle.contains("no AMM"), "{oracle}");
    }
}

#[test]
fn spare_pages_are_counted_where_nobody_else_can_want_them() {
    let known = oracle(Present(HugePageUse {
        asked: "try".to_owned(),
        size_bytes: Present(Bytes::MIB_2),
        needed_pages: Present(2901),
        lengths_bytes: vec![Bytes::from_mib(5800)],
        source: "segments".to_owned(),
    }));
    let unknown = oracle(Absent("nothing is asked".to_owned()));
    for ((host, other), pages) in [(known, 5401), (unknown, 5500)] {
        let server = server(Bytes::from_mib(5000), &host);
        let snapshot = snapshot(host, vec![server, other]);
        let mut check = check(&snapshot, "small-pages", "hugepage-pool");
        check.databases[1].findings.clear();
        let wish = Wish::default();
        let plan = untax_remedies::plan("a".to_owned(), &check, &snapshot, &wish).unwrap();
        assert_eq!(pools(&plan), [format!("pool of 2 MiB pages: 3000 -> {pages}")]);
    }
}

#[test]
fn nothing_is_reserved_for_a_program_whose_need_is_not_known() {
    let mut host = host_of(Bytes::KIB_4, &[Bytes::MIB_2], Bytes(60 * GIB));
    for pages in [0, 3000] {
        let Present(pools) = &mut host.hugepages else { unreachable!() };
        pools[0] = pool(Bytes::MIB_2, None, pages);
        let java = Database {
            memory: postgres(Bytes::from_mib(5800)).memory,
            ..Database::unknown("generic", 77, "no database")
        };
        let plan = plan_of(&snapshot(host.clone(), vec![java]), None);
        assert_eq!(plan.steps, []);
    }
}

#[test]
fn a_pool_that_memory_does_not_hold_is_refused_and_insisted_on_by_nobody() {
    let host = host_of(Bytes::KIB_4, &[Bytes::MIB_2], Bytes(8 * GIB));
    let server = server(Bytes::from_mib(7400), &host);
    let plan = plan_of(&snapshot(host, vec![server]), None);
    assert_eq!((plan.steps.len(), config(&plan).as_str()), (0, ""));
    let refusal = plan.warnings.iter().find(|warning| warning.refuses).unwrap();
    assert!(refusal.text.contains("7.2 GiB of huge pages more"), "{}", refusal.text);
}

#[test]
fn every_limit_on_the_way_to_a_pool_is_named() {
    let host = host_of(Bytes::KIB_4, &[Bytes::MIB_2], Bytes(60 * GIB));
    let mut server = server(Bytes::from_mib(5000), &host);
    let limit = |group: &str, max: u64| HugetlbLimit {
        cgroup: group.to_owned(),
        size_bytes: Bytes::MIB_2,
        max_bytes: Present(Bytes::from_mib(max)),
        rsvd_max_bytes: Absent("unlimited".to_owned()),
        usage_bytes: Present(Bytes(0)),
    };
    server.cgroup = Present(Cgroup {
        hugetlb: Present(vec![limit("/a/b/c", 9000), limit("/a/b", 0), limit("/a", 4000)]),
        ..Cgroup::unknown([("unified".to_owned(), "/a/b/c".to_owned())].into(), "not read")
    });
    let plan = plan_of(&snapshot(host, vec![server]), None);
    let tasks = plan.tasks.iter().filter(|task| task.remedy == "cgroup-hugetlb-limit");
    let tasks: Vec<_> = tasks.map(|task| task.summary.split_once(", ").unwrap().1).collect();
    let bytes = 5000_u64 << 20;
    assert_eq!(
        tasks,
        [
            format!("hugetlb.2MB.max of /a/b: 0 B -> {bytes} bytes at least"),
            format!("hugetlb.2MB.max of /a: 3.9 GiB -> {bytes} bytes at least"),
        ]
    );
}

/// A host of this distribution, whose files are not a person's to write.
fn managed(id: &str) -> Plan {
    let mut host = host_of(Bytes::KIB_4, &[Bytes::MIB_2, Bytes::GIB_1], Bytes(60 * GIB));
    let Present(distribution) = &mut host.distribution else { unreachable!() };
    (distribution.id, distribution.boot_loader) = (id.to_owned(), gap());
    let server = server(Bytes::from_mib(5000), &host);
    plan_of(&snapshot(host, vec![server]), None)
}

#[test]
fn hosts_without_files_to_write_are_told_by_what_keeps_their_settings() {
    for (id, line) in [
        ("talos", "machine:\n  sysctls:\n    vm.nr_hugepages: \"2500\"\n"),
        ("nixos", "boot.kernel.sysctl.\"vm.nr_hugepages\" = \"2500\";"),
        ("cos", "linuxConfig:\n  sysctl:\n    vm.nr_hugepages: \"2500\"\n"),
    ] {
        let plan = managed(id);
        let is_file = |target: &Target| !matches!(target, Target::Pool { .. });
        assert!(!plan.steps.iter().any(|step| is_file(&step.target)), "{id}: {:#?}", plan.steps);
        assert!(boot(&plan).contains(line), "{id}: {}", boot(&plan));
    }
}

#[test]
fn transparent_pages_are_offered_beside_a_pool_and_planned_when_they_are_chosen() {
    let mut host = host_of(Bytes::KIB_4, &[Bytes::MIB_2], Bytes(60 * GIB));
    let thp =
        Thp { shmem_enabled: Present("never".to_owned()), ..Thp::unknown("madvise", "not read") };
    host.thp = Present(thp);
    let server = server(Bytes::from_mib(5000), &host);
    let mut snapshot = snapshot(host, vec![server]);
    let offered = |plan: &Plan| plan.warnings.iter().any(|w| w.id == "shmem-thp" && !w.refuses);
    assert!(offered(&plan_of(&snapshot, None)));

    let chosen = plan_of(&snapshot, Some("thp"));
    assert!(!offered(&chosen) && config(&chosen).is_empty() && pools(&chosen).is_empty());
    let file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let steps: Vec<_> = chosen.steps.iter().map(|s| (s.from.as_deref(), s.to.as_deref())).collect();
    let line = format!("# Made by untax.\nw {file} - - - - always\n");
    assert_eq!(steps, [(Some("never"), Some("always")), (None, Some(line.as_str()))]);
    assert_eq!(chosen.steps[0].target, Target::Word { file: file.to_owned() });
    assert!(chosen.tasks[0].summary.contains("restart it"));

    let Present(thp) = &mut snapshot.host.thp else { unreachable!() };
    thp.shmem_enabled = Present("always".to_owned());
    assert!(!offered(&plan_of(&snapshot, None)), "they are there already");
    snapshot.host.hugepages = Absent("this kernel has no pools".to_owned());
    let Present(thp) = &mut snapshot.host.thp else { unreachable!() };
    thp.shmem_enabled = Present("advise".to_owned());
    let plan = plan_of(&snapshot, None);
    assert!(offered(&plan) && plan.steps.is_empty(), "where no pool can be had");
}
