//! The node's half of [`super::kubernetes`]: its pool, and what tells it from other nodes.

use crate::case::Case;
use crate::managed::{self, Managed};
use crate::pool_plan::{PoolPlan, now_and_most};
use crate::sizing::is_found_running;
use untax_core::plan::Task;
use untax_core::{Bytes, page_size};

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
    pub fn name(self) -> String {
        page_size::kubernetes_word(self.0)
    }

    /// The size.
    pub fn bytes(self) -> Bytes {
        self.0
    }

    /// So many pages as a quantity, in the form in which Kubernetes writes it back: the largest
    /// unit that leaves no fraction.
    pub fn quantity(self, pages: u64) -> String {
        const UNITS: [(&str, u32); 3] = [("Ti", 40), ("Gi", 30), ("Mi", 20)];
        let bytes = pages.saturating_mul(self.0.0);
        let whole = |&&(_, shift): &&(&str, u32)| bytes.is_multiple_of(1 << shift);
        let (unit, shift) = UNITS.iter().find(whole).copied().unwrap_or(("Ki", 10));
        format!("{}{unit}", bytes >> shift)
    }
}

/// A script that prepares a node, and the classes of nodes. Where a node like this one has no room for
/// the pages, only the classes.
pub fn tasks(case: &Case, page: Page, pages: u64) -> Vec<Task> {
    let size = page.name().to_lowercase();
    let task = |summary: String, name: String, text: String| Task {
        remedy: REMEDY_ID.to_owned(),
        summary,
        databases: case.databases(),
        file: Some((name, text)),
    };
    let node = counts(case, page, pages).map(|counts| {
        task(
            format!("nodes for databases: reserve pages of {}, one node at a time", page.bytes()),
            format!("kubernetes-node-{size}.sh"),
            script(case, page, &counts),
        )
    });
    let cluster = task(
        "the cluster: two classes of nodes, with and without a pool".to_owned(),
        format!("kubernetes-classes-{size}.yaml"),
        classes(page),
    );
    node.into_iter().chain([cluster]).collect()
}

/// Pages of each NUMA node by number; without numbers where nothing is known of them; `None` where there
/// is no room for them.
fn counts(case: &Case, page: Page, pages: u64) -> Option<Vec<(Option<u32>, u64)>> {
    if let PoolPlan::Wanted(places) = PoolPlan::of(case)
        && case.page() == Some(page.bytes())
        && places.iter().map(|place| place.to).sum::<u64>() >= pages
    {
        let counts = places.iter().map(|place| (place.pool.node, place.to));
        return Some(counts.filter(|(_, to)| *to > 0).collect());
    }
    // A pool that is large enough already is no reason to take pages away.
    let (now, most) = now_and_most(case, page.bytes())?;
    (pages <= most).then(|| vec![(None, pages.max(now))])
}

fn script(case: &Case, page: Page, counts: &[(Option<u32>, u64)]) -> String {
    let all: u64 = counts.iter().map(|(_, pages)| pages).sum();
    let name = page.name();
    let boot = if is_found_running(case.snapshot, page.bytes()) {
        "# For the next boots: hugepage-boot in the plan.\n"
    } else {
        "# So large pages hardly ever exist on a running machine: ask for them at boot first\n\
         # (hugepage-boot in the plan), and reboot the node after the drain.\n"
    };
    let reach = match managed::of(case.snapshot) {
        Some(Managed::Talos) => Reach::talos(case, page, counts),
        Some(_) => Reach::by_a_person(),
        None => Reach::ssh(page, counts),
    };
    let words = [
        ("@BY@", reach.by.to_owned()),
        ("@POOL@", reach.pool),
        ("@RESTART@", reach.restart.to_owned()),
        ("@SIZE@", name.to_lowercase()),
        ("@ROOM@", room(case, page, all)),
        ("@PAGES@", all.to_string()),
        ("@BOOT@", boot.to_owned()),
        ("@NAME@", name),
        ("@QUANTITY@", page.quantity(all)),
        ("@KIBIBYTES@", (all.saturating_mul(page.bytes().0) >> 10).to_string()),
        ("@LABEL@", LABEL.to_owned()),
        ("@KEY@", TAINT_KEY.to_owned()),
        ("@VALUE@", TAINT_VALUE.to_owned()),
    ];
    let template = include_str!("templates/kubernetes-node.sh").to_owned();
    words.iter().fold(template, |text, (word, value)| text.replace(word, value))
}

/// How a script reaches a node.
struct Reach {
    /// What it needs, for its head.
    by: &'static str,
    /// The lines that make the pool, and end the script where it comes out smaller.
    pool: String,
    /// The line that restarts the kubelet.
    restart: &'static str,
}

impl Reach {
    fn ssh(page: Page, counts: &[(Option<u32>, u64)]) -> Self {
        let kilobytes = page_size::directory(page.bytes());
        let write = |(node, pages): &(Option<u32>, u64)| match node {
            Some(node) => {
                let directory = format!("/sys/devices/system/node/node{node}/hugepages");
                format!("set_pool {directory}/{kilobytes} {pages}\n")
            }
            None => format!("set_pool /sys/kernel/mm/hugepages/{kilobytes} {pages}\n"),
        };
        let writes: String = counts.iter().map(write).collect();
        let template = include_str!("templates/kubernetes-node-pool.sh");
        Self {
            by: "NODE is reached by ssh as root",
            pool: template.replace("@WRITES@", &writes),
            restart: "ssh \"root@$node\" systemctl restart kubelet",
        }
    }

    /// Talos has neither ssh nor a shell. A number of pages of the default size is a setting that it
    /// applies at once; other sizes come with a boot.
    fn talos(case: &Case, page: Page, counts: &[(Option<u32>, u64)]) -> Self {
        let all: u64 = counts.iter().map(|(_, pages)| pages).sum();
        let file =
            format!("/sys/kernel/mm/hugepages/{}/nr_hugepages", page_size::directory(page.0));
        let by_sysctl = case.snapshot.default_huge_page() == Some(page.bytes());
        let patch = format!(
            "has=$(talosctl -n \"$node\" read {file})\n[ \"$has\" -ge {all} ] || talosctl -n \"$node\" \
             patch machineconfig --patch \\\n    \
             '{{\"machine\": {{\"sysctls\": {{\"vm.nr_hugepages\": \"{all}\"}}}}}}'\nsleep 5\n"
        );
        let check = format!(
            "has=$(talosctl -n \"$node\" read {file})\n[ \"$has\" -ge {all} ] || {{\n    echo \
             \"$node has $has pages, not {all}: reboot it, or choose fewer\" >&2\n    exit 1\n}}\n"
        );
        Self {
            by: "and talosctl",
            pool: if by_sysctl { format!("{patch}{check}") } else { check },
            restart: "talosctl -n \"$node\" service kubelet restart",
        }
    }

    fn by_a_person() -> Self {
        Self {
            by: "its settings go through an API",
            pool: "echo \"put the settings of hugepage-boot into $node, reboot it, press Enter\"\n\
                   read -r _\n"
                .to_owned(),
            restart: ": \"the boot did it\"",
        }
    }
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
