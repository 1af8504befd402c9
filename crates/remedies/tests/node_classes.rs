//! The classes of nodes that databases want.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, host, postgres, snapshot};
use untax_core::Reading::{Absent, Present};
use untax_core::{Bytes, Check, Database, Finding, Severity, Snapshot};
use untax_remedies::{ClassesError, Seen, node_classes};

const GIB: u64 = 1 << 30;

/// A node of 24 GiB, of which 20 are available, with these databases.
fn node(databases: Vec<Database>) -> Snapshot {
    snapshot(host("debian", "12", Absent("not looked for".to_owned()), ""), databases)
}

/// Each of its databases suffers from small pages.
fn suffering(snapshot: &Snapshot) -> Check {
    check(snapshot, "small-pages", "hugepage-pool")
}

/// In halves of a GiB.
fn halves(bytes: [Bytes; 5]) -> [u64; 5] {
    bytes.map(|bytes| bytes.0 / (GIB / 2))
}

#[test]
fn nodes_of_a_class_have_the_pool_that_the_largest_of_them_needs() {
    let [large, small, without] = [8, 2, 1].map(|size| node(vec![postgres(Bytes(size * GIB))]));
    let checks = [suffering(&large), suffering(&small), Check::of(&without, "a-run", "not read")];
    let all: Vec<Seen> = ["a", "b", "c"]
        .into_iter()
        .zip(checks.iter().zip([&large, &small, &without]))
        .map(|(node, (check, snapshot))| Seen { node, check, snapshot })
        .collect();
    let plan = node_classes(&all, None).unwrap();
    let classes: Vec<_> =
        plan.classes.iter().map(|class| (class.name.as_str(), class.nodes)).collect();
    assert_eq!(classes, [("database-2mi", 2), ("general", 1)]);
    let class = &plan.classes[0];
    assert_eq!((class.pools[0].size_bytes, class.pools[0].pages), (Bytes::MIB_2, 4096));
    assert_eq!(class.labels["untax/node-class"], "database-2mi");
    assert_eq!(class.labels["feature.node.kubernetes.io/memory-hugepages-2Mi"], "true");
    assert_eq!(class.taints, ["dedicated=database-huge-pages:NoSchedule"]);
    assert!(plan.classes[1].taints.is_empty());
    let asked = plan.databases[1].huge_pages.clone().unwrap();
    assert_eq!(asked, ("hugepages-2Mi".to_owned(), "2Gi".to_owned()));
    assert_eq!(plan.databases[2].huge_pages, None);
    // 4 GiB are in use now, half a GiB of them by the database, which asks for 1 GiB beside its pages.
    assert_eq!(halves(plan.nodes[0].memory.parts()), [48, 16, 2, 7, 23]);
    assert_eq!(halves(plan.nodes[2].memory.parts()), [48, 0, 3, 7, 38]);
}

#[test]
fn a_size_that_is_chosen_and_slow_disks_make_classes_of_their_own() {
    let snapshot = node(vec![postgres(Bytes(3 * GIB / 2))]);
    let mut check = suffering(&snapshot);
    check.databases[0].findings.push(Finding::new("disk-slow", Severity::Medium, "slow", "faster"));
    let seen = [Seen { node: "a", check: &check, snapshot: &snapshot }];
    let plan = node_classes(&seen, Some(Bytes::GIB_1)).unwrap();
    assert_eq!(plan.nodes[0].class, "database-1gi-low-latency-disks");
    assert_eq!(plan.classes[0].pools[0].pages, 2, "whole pages");
    let none = node_classes(&seen, Some(Bytes(64 << 10))).unwrap_err().to_string();
    assert_eq!(none, "a has no huge pages of 64k; it has 2m, 1g");
    check.databases[0].findings = vec![Finding::new("io-hang", Severity::Low, "slow", "faster")];
    let seen = [Seen { node: "a", check: &check, snapshot: &snapshot }];
    assert_eq!(node_classes(&seen, None).unwrap().nodes[0].class, "general", "not by a small one");
}

#[test]
fn a_negative_rest_is_refused_with_its_parts() {
    let large = node(vec![postgres(Bytes(22 * GIB))]);
    let small = node(vec![postgres(Bytes(GIB))]);
    let [of_large, of_small] = [suffering(&large), suffering(&small)];
    let large = Seen { node: "a", check: &of_large, snapshot: &large };
    let error = node_classes(&[large], None).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ClassesError::Overcommitted { .. }), "{text}");
    assert!(
        text.contains("a as database-2mi: 22 GiB in pools") && text.contains("2.5 GiB more"),
        "{text}"
    );
    let mut unknown = node(vec![postgres(Bytes(GIB))]);
    unknown.host.hugepages = Absent("no such directory".to_owned());
    let seen = [
        Seen { node: "b", check: &of_small, snapshot: &small },
        Seen { node: "c", check: &of_small, snapshot: &unknown },
    ];
    let text = node_classes(&seen, None).unwrap_err().to_string();
    assert!(
        text.starts_with("c: the size of its pools is not known (no such directory)"),
        "{text}"
    );
}

#[test]
fn a_database_that_uses_a_pool_keeps_its_page_size() {
    let mut database = postgres(Bytes(2 * GIB));
    database.memory.hugetlb_bytes = Present(Bytes(2 * GIB));
    database.memory.page_size_bytes = Present(Bytes::MIB_2);
    let snapshot = node(vec![database]);
    let check = Check::of(&snapshot, "a-run", "not read");
    let seen = [Seen { node: "a", check: &check, snapshot: &snapshot }];
    let plan = node_classes(&seen, None).unwrap();
    assert_eq!(plan.classes[0].name, "database-2mi");
    assert_eq!(plan.classes[0].pools[0].pages, 1024);
}
