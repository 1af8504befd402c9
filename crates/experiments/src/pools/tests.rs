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
    put("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always advise [never] deny force\n");
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
    assert_eq!(pool.obtain(&tree, 10, &Interrupt::default()).unwrap(), 10);
    assert_eq!(pages(root.path(), 0), "10");
}

#[test]
fn a_wish_to_stop_ends_the_asking() {
    // Nothing becomes free in a directory of plain files, so this would go on asking.
    let (_root, tree) = machine(&[0]);
    let interrupt = Interrupt::default();
    interrupt.raise();
    let pool = Pool::find(&tree, Bytes::MIB_2).unwrap();
    assert!(matches!(pool.obtain(&tree, 5, &interrupt), Err(PoolError::Interrupted(_))));
}

#[test]
fn promised_pages_are_not_free() {
    let (root, tree) = machine(&[10]);
    let file = "sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages";
    fs::write(root.path().join(file), "4\n").unwrap();
    assert_eq!(Pool::find(&tree, Bytes::MIB_2).unwrap().free(&tree).unwrap(), 6);
}

#[test]
fn everything_is_restored_and_surplus_is_not_counted_as_configured() {
    let (root, tree) = machine(&[10, 20]);
    let surplus = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/surplus_hugepages";
    fs::write(root.path().join(surplus), "5\n").unwrap();
    let pool = Pool::find(&tree, Bytes::MIB_2).unwrap();
    let mut settings = pool.settings(&tree).unwrap();
    let change = shared_transparent_settings(&tree).unwrap();
    settings.extend(change.clone());
    let journal = Journal::new(&tree, settings);
    pool.grow(&tree, 100).unwrap();
    allow_shared_transparent(&tree, &change).unwrap();
    assert_eq!(tree.word(SHMEM).unwrap(), "advise");
    fs::write(root.path().join(surplus), "0\n").unwrap();
    assert!(journal.restore(Duration::ZERO).is_empty());
    assert_eq!((pages(root.path(), 0), pages(root.path(), 1)), ("10".to_owned(), "15".to_owned()));
    assert_eq!(tree.word(SHMEM).unwrap(), "never");
}

#[test]
fn what_cannot_be_restored_is_named() {
    let (root, tree) = machine(&[10]);
    let settings = Pool::find(&tree, Bytes::MIB_2).unwrap().settings(&tree).unwrap();
    let journal = Journal::new(&tree, settings);
    let surplus = "sys/devices/system/node/node0/hugepages/hugepages-2048kB/surplus_hugepages";
    fs::write(root.path().join(surplus), "3\n").unwrap();
    let left = journal.restore(Duration::ZERO);
    assert_eq!(left.len(), 1);
    assert!(left[0].0.file().contains("node0"));
    fs::remove_file(root.path().join(surplus)).unwrap();
    assert_eq!(journal.restore(Duration::ZERO).len(), 1);
}

#[test]
fn transparent_pages_that_are_allowed_need_no_change() {
    let (root, tree) = machine(&[0]);
    fs::write(root.path().join(&SHMEM[1..]), "always [within_size] advise never\n").unwrap();
    assert_eq!(shared_transparent_settings(&tree), Some(Vec::new()));
    fs::remove_file(root.path().join(&SHMEM[1..])).unwrap();
    assert_eq!(shared_transparent_settings(&tree), None);
}

#[test]
fn a_journal_survives_and_one_of_another_boot_does_not_count() {
    let (_root, tree) = machine(&[10]);
    let state = tempfile::tempdir().unwrap();
    let settings = Pool::find(&tree, Bytes::MIB_2).unwrap().settings(&tree).unwrap();
    let journal = Journal::new(&tree, settings);
    let path = journal.save(state.path()).unwrap();
    assert_eq!(Journal::load(&path).unwrap(), Some(journal));
    let text = fs::read_to_string(&path).unwrap();
    let boot = tree_boot(&text);
    fs::write(&path, text.replace(&boot, "another-boot")).unwrap();
    assert_eq!(Journal::load(&path).unwrap(), None);
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(Journal::load(&path).is_err());
    assert_eq!(Journal::load(&state.path().join("none")).unwrap(), None);
}

fn tree_boot(journal: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(journal).unwrap();
    json["boot"].as_str().unwrap().to_owned()
}
