//! Tests of pools on a directory that looks like the kernel's, but obeys without delay.

#![expect(clippy::disallowed_methods, reason = "reads what the test itself wrote")]

use super::*;
use std::fs;
use std::path::Path;

/// A machine with pools of 2 MiB pages on these nodes.
fn machine(nodes: &[u64]) -> (tempfile::TempDir, Tree) {
    let root = tempfile::tempdir().unwrap();
    let put = |file: &str, text: &str| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let mut directories = vec![("sys/kernel/mm".to_owned(), nodes.iter().sum::<u64>())];
    directories.extend((0..).zip(nodes).map(|(node, pages): (usize, &u64)| {
        (format!("sys/devices/system/node/node{node}"), *pages)
    }));
    for (directory, pages) in directories {
        let pool = format!("{directory}/hugepages/hugepages-2048kB");
        for (file, value) in
            [("nr_hugepages", pages), ("free_hugepages", pages), ("surplus_hugepages", 0)]
        {
            put(&format!("{pool}/{file}"), &format!("{value}\n"));
        }
        put(&format!("{pool}/resv_hugepages"), "0\n");
    }
    put("proc/sys/vm/compact_memory", "");
    let tree = Tree::at(root.path());
    (root, tree)
}

fn pages(root: &Path, node: usize) -> String {
    let file =
        format!("sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    fs::read_to_string(root.join(file)).unwrap().trim().to_owned()
}

#[test]
fn pages_are_asked_of_every_node() {
    let (root, tree) = machine(&[10, 20]);
    let pool = Pool::find(&tree, Bytes::MIB_2).unwrap();
    pool.grow(&tree, 7).unwrap();
    assert_eq!((pages(root.path(), 0), pages(root.path(), 1)), ("14".to_owned(), "23".to_owned()));
    assert!(Pool::find(&tree, Bytes::GIB_1).is_none());
}

#[test]
fn enough_free_pages_change_nothing() {
    let (root, tree) = machine(&[10]);
    let pool = Pool::find(&tree, Bytes::MIB_2).unwrap();
    assert_eq!(pool.obtain(&tree, 10, |_| true).unwrap(), 10);
    assert_eq!(pages(root.path(), 0), "10");
}

#[test]
fn a_wish_to_stop_ends_the_asking() {
    // Nothing becomes free in a directory of plain files, so this would go on asking.
    let (_root, tree) = machine(&[0]);
    let pool = Pool::find(&tree, Bytes::MIB_2).unwrap();
    assert_eq!(pool.obtain(&tree, 5, |_| false).unwrap(), 0);
}

#[test]
fn promised_pages_are_not_free() {
    let (root, tree) = machine(&[10]);
    let file = "sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages";
    fs::write(root.path().join(file), "4\n").unwrap();
    assert_eq!(Pool::find(&tree, Bytes::MIB_2).unwrap().free(&tree).unwrap(), 6);
}

#[test]
fn surplus_pages_are_not_counted_as_configured() {
    let (root, tree) = machine(&[10, 20]);
    let node = "sys/devices/system/node/node1/hugepages/hugepages-2048kB";
    let surplus = root.path().join(format!("{node}/surplus_hugepages"));
    fs::write(&surplus, "5\n").unwrap();
    let node = format!("/{node}");
    assert_eq!(configured(&tree, &node).unwrap(), 15);
}

#[test]
fn pages_in_use_are_not_given_back_yet() {
    let (root, tree) = machine(&[10]);
    let node = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB";
    let surplus = root.path().join(format!("{}/surplus_hugepages", &node[1..]));
    set(&tree, node, 50).unwrap();
    fs::write(&surplus, "3\n").unwrap();
    assert!(!give_back(&tree, node, 10, 0).unwrap());
    // As many were surplus before: they are somebody else's.
    set(&tree, node, 13).unwrap();
    assert!(give_back(&tree, node, 10, 3).unwrap());
    fs::write(&surplus, "0\n").unwrap();
    assert!(give_back(&tree, node, 10, 0).unwrap());
    assert_eq!(pages(root.path(), 0), "10");
}
