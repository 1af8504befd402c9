//! The node's half of [`super::kubernetes`]: its pool, and what tells it from other nodes.

use super::hugepage_pool::targets;
use crate::case::Case;
use crate::lint::kilobytes;
use crate::sizing::size_of;
use untax_core::Bytes;
use untax_core::plan::Task;

/// Node Feature Discovery's name space and way of naming; a size follows. It knows the pools
/// (feature `memory.hugepages`), but has a label for them only with a rule such as ours.
pub const LABEL: &str = "feature.node.kubernetes.io/memory-hugepages";
/// Keeps pods away that did not ask for such a node.
pub const TAINT_KEY: &str = "dedicated";
pub const TAINT_VALUE: &str = "database-huge-pages";

/// The remedy that hands over the tasks of this file.
pub const REMEDY_ID: &str = "kubernetes";

/// Huge pages of one size as Kubernetes names them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page(pub Bytes);

impl Page {
    /// The size: `2Mi` or `1Gi`.
    pub fn name(self) -> &'static str {
        if self.0 == Bytes::GIB_1 { "1Gi" } else { "2Mi" }
    }

    /// The size.
    pub fn bytes(self) -> Bytes {
        self.0
    }

    /// So many pages as a quantity, in the form in which Kubernetes writes it back: the largest
    /// unit that leaves no fraction.
    pub fn quantity(self, pages: u64) -> String {
        let mebibytes = pages.saturating_mul(self.0.0 >> 20);
        match mebibytes {
            _ if mebibytes.is_multiple_of(1 << 20) => format!("{}Ti", mebibytes >> 20),
            _ if mebibytes.is_multiple_of(1 << 10) => format!("{}Gi", mebibytes >> 10),
            _ => format!("{mebibytes}Mi"),
        }
    }
}

/// A script that prepares a node, and the classes of nodes.
pub fn tasks(case: &Case, page: Page, pages: u64) -> [Task; 2] {
    let size = page.name().to_lowercase();
    let task = |summary: String, name: String, text: String| Task {
        remedy: REMEDY_ID.to_owned(),
        summary,
        databases: case.databases(),
        file: Some((name, text)),
    };
    [
        task(
            format!("nodes for databases: reserve pages of {}, one node at a time", page.bytes()),
            format!("kubernetes-node-{size}.sh"),
            script(case, page, pages),
        ),
        task(
            "the cluster: two classes of nodes, with and without a pool".to_owned(),
            format!("kubernetes-classes-{size}.yaml"),
            classes(page),
        ),
    ]
}

/// Pages of each NUMA node by number; without numbers where nothing is known of them.
fn counts(case: &Case, page: Page, pages: u64) -> Vec<(Option<u32>, u64)> {
    let advised = size_of(&case.sizing.node.advice.page) == page.bytes();
    let known = targets(case).filter(|_| advised).unwrap_or_default();
    let counts: Vec<_> = known.iter().map(|(pool, to)| (pool.node, *to)).collect();
    // A pool that is large enough already is no reason to take pages away.
    let enough = counts.iter().map(|(_, pages)| pages).sum::<u64>() >= pages;
    if enough { counts } else { vec![(None, pages)] }
}

fn script(case: &Case, page: Page, pages: u64) -> String {
    let counts = counts(case, page, pages);
    let all: u64 = counts.iter().map(|(_, pages)| pages).sum();
    let kilobytes = kilobytes(page.bytes());
    let writes: String = counts
        .iter()
        .map(|(node, pages)| match node {
            Some(node) => {
                format!(
                    "set_pool /sys/devices/system/node/node{node}/hugepages/{kilobytes} {pages}\n"
                )
            }
            None => format!("set_pool /sys/kernel/mm/hugepages/{kilobytes} {pages}\n"),
        })
        .collect();
    let name = page.name();
    let quantity = page.quantity(all);
    let boot = if page.bytes() == Bytes::GIB_1 {
        "# 1 GiB pages hardly ever exist on a running machine: put them on the kernel's command\n\
         # line first (hugepage-boot in the plan), and reboot the node after the drain.\n"
    } else {
        "# For the next boots: hugepage-boot in the plan.\n"
    };
    let words = [
        ("@SIZE@", name.to_lowercase()),
        ("@ROOM@", room(case, page, all)),
        ("@PAGES@", all.to_string()),
        ("@BOOT@", boot.to_owned()),
        ("@WRITES@", writes),
        ("@NAME@", name.to_owned()),
        ("@QUANTITY@", quantity),
        ("@LABEL@", LABEL.to_owned()),
        ("@KEY@", TAINT_KEY.to_owned()),
        ("@VALUE@", TAINT_VALUE.to_owned()),
    ];
    let template = include_str!("templates/kubernetes-node.sh").to_owned();
    words.iter().fold(template, |text, (word, value)| text.replace(word, value))
}

/// What the pool leaves to pods that use none of it.
fn room(case: &Case, page: Page, pages: u64) -> String {
    let pool = Bytes(pages.saturating_mul(page.bytes().0));
    let left = match case.snapshot.host.memory.value() {
        Some(memory) => format!(": {} of {}", memory.total_bytes - pool, memory.total_bytes),
        None => String::new(),
    };
    format!(
        "#\n# The whole pool, {pool}, is taken from the node's allocatable memory, used or not: \
         what other\n# pods may request is less than the rest{left}.\n"
    )
}

fn classes(page: Page) -> String {
    let name = page.name();
    format!(
        "# Made by untax: two classes of nodes.\n\
         #\n\
         # class      pool               label                                              taint\n\
         # general    none               none                                               none\n\
         # databases  hugepages-{name}      {LABEL}-{name}=true  \
         {TAINT_KEY}={TAINT_VALUE}:NoSchedule\n\
         #\n\
         # A pod of a database has the label in its nodeSelector and tolerates the taint. Databases\n\
         # that use no huge pages, and everything else, run on general nodes: the pool is memory\n\
         # that they could never have.\n\
         #\n\
         # With Node Feature Discovery this rule sets the label where there is a pool, and takes it\n\
         # away where there is none; without it the script for nodes does.\n\
         apiVersion: nfd.k8s-sigs.io/v1alpha1\n\
         kind: NodeFeatureRule\n\
         metadata:\n  name: untax-huge-pages-{lower}\n\
         spec:\n  rules:\n    - name: pool of {name} pages\n      labels:\n        \
         memory-hugepages-{name}: \"true\"\n      matchFeatures:\n        \
         - feature: memory.hugepages\n          matchExpressions:\n            \
         hugepages-{name}: {{op: Gt, value: [\"0\"]}}\n",
        lower = name.to_lowercase(),
    )
}
