//! The classes of nodes that the databases of a fleet want. Pure, from what was seen of each node.

use crate::remedies::kubernetes::memory_beside;
use crate::remedies::kubernetes_node::{LABEL, Page, TAINT_KEY, TAINT_VALUE};
use crate::sizing::{sizes, sizing};
use std::collections::{BTreeMap, BTreeSet};
use untax_core::host::Pool;
use untax_core::node_classes::{Balance, Class, ClassPool, Node, NodeClasses, Placed, SCHEMA};
use untax_core::{Bytes, Check, Database, Severity, Snapshot, page_size};

/// What was seen of one node.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its name.
    pub node: &'a str,
    /// The check.
    pub check: &'a Check,
    /// The node and its databases at the end of it.
    pub snapshot: &'a Snapshot,
}

/// Why there are no classes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassesError {
    /// A fact of a node is not known.
    #[error("{node}: {what} is not known ({why}); check that node again")]
    Unknown {
        /// The node.
        node: String,
        /// What.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// A size of huge page that a node does not have.
    #[error("{node} has no huge pages of {page}; it has {}", has.join(", "))]
    NoSuchPage {
        /// The node.
        node: String,
        /// The size asked for.
        page: String,
        /// Those that there are.
        has: Vec<String>,
    },
    /// The parts of a node's memory are more than the whole.
    #[error(
        "{node} as {class}: {} in pools, {} for databases and {} in use by others are {missing} more than its {}; \
         move a database to another node, or give the node more memory", parts[1], parts[2], parts[3], parts[0]
    )]
    Overcommitted {
        /// The node.
        node: String,
        /// The class that it was to be of.
        class: String,
        /// By how much.
        missing: Bytes,
        /// All of its memory, pools, databases, others.
        parts: [Bytes; 4],
    },
}

/// What only faster disks mend.
const DISK_RULES: [&str; 3] = ["disk-slow", "io-hang", "storage-remote"];

/// The label that names a node's class.
const CLASS_LABEL: &str = "untax/node-class";

/// What one database wants.
struct Need<'a> {
    database: &'a Database,
    pages: Option<(Page, u64)>,
}

/// What one node is to be.
struct Draft<'a> {
    seen: &'a Seen<'a>,
    needs: Vec<Need<'a>>,
    class: String,
    /// Pages by their size.
    pools: BTreeMap<Page, u64>,
    low_latency_disks: bool,
}

/// The classes for these nodes, each of which keeps its databases. `page` is the size that the user chose.
pub fn node_classes(all: &[Seen], page: Option<Bytes>) -> Result<NodeClasses, ClassesError> {
    let drafts = all.iter().map(|seen| draft(seen, page)).collect::<Result<Vec<Draft>, _>>()?;
    let mut classes: BTreeMap<&str, Class> = BTreeMap::new();
    for draft in &drafts {
        let class = classes.entry(&draft.class).or_insert_with(|| class_of(draft));
        class.nodes += 1;
        for (page, pages) in &draft.pools {
            let pool = class.pools.iter_mut().find(|pool| pool.size_bytes == page.bytes());
            if let Some(pool) = pool {
                pool.pages = pool.pages.max(*pages);
            }
        }
    }
    let mut nodes = Vec::new();
    let mut databases = Vec::new();
    for draft in &drafts {
        let asked: Vec<Placed> = draft.needs.iter().map(|need| placed(draft, need)).collect();
        let class = &classes[draft.class.as_str()];
        let memory = balance(draft, class, asked.iter().map(|placed| placed.memory_bytes).sum())?;
        nodes.push(Node { node: draft.seen.node.to_owned(), class: draft.class.clone(), memory });
        databases.extend(asked);
    }
    let classes = classes.into_values().collect();
    Ok(NodeClasses { schema: SCHEMA, classes, nodes, databases })
}

fn draft<'a>(seen: &'a Seen, page: Option<Bytes>) -> Result<Draft<'a>, ClassesError> {
    let has = sizes(seen.snapshot);
    if let Some(page) = page.filter(|page| !has.contains(page)) {
        let has = has.into_iter().map(page_size::token).collect();
        return Err(ClassesError::NoSuchPage {
            node: seen.node.to_owned(),
            page: page_size::token(page),
            has,
        });
    }
    let sizing = sizing(seen.check, seen.snapshot, page);
    let advised = page_size::from_token(&sizing.node.advice.page);
    let need = |database: &'a Database| {
        let size = wanted(seen.check, database, advised, page.is_some());
        let of = sizing.databases.iter().find(|of| of.id == database.id);
        let pages = size.zip(of.and_then(|of| of.huge_pages.value())).and_then(|(size, pages)| {
            let pages = *pages.get(&page_size::token(size))?;
            (pages > 0).then_some((Page(size), pages))
        });
        Need { database, pages }
    };
    let needs: Vec<Need> = seen.snapshot.databases.iter().map(need).collect();
    let mut pools = BTreeMap::new();
    for (page, pages) in needs.iter().filter_map(|need| need.pages) {
        let sum: &mut u64 = pools.entry(page).or_default();
        *sum = sum.saturating_add(pages);
    }
    let low_latency_disks = seen.check.databases.iter().any(|database| {
        let mut findings = database.findings.iter();
        findings.any(|of| of.severity >= Severity::Medium && DISK_RULES.contains(&of.rule.as_str()))
    });
    let class = name(&pools, low_latency_disks);
    Ok(Draft { seen, needs, class, pools, low_latency_disks })
}

/// The size of huge page that a database is to have: that which it uses, or the advised one where it suffers
/// without.
fn wanted(
    check: &Check,
    database: &Database,
    advised: Option<Bytes>,
    is_chosen: bool,
) -> Option<Bytes> {
    let mut checked = check.databases.iter().filter(|of| of.id == database.id);
    let suffers = checked.any(|of| {
        of.findings.iter().any(|finding| finding.remedy.as_deref() == Some("hugepage-pool"))
    });
    let uses = database.memory.hugetlb_bytes.value().is_some_and(|bytes| bytes.0 > 0);
    match (uses, suffers) {
        (true, _) if is_chosen => advised,
        (true, _) => database.huge_pages.value()?.size_bytes.value().copied().or(advised),
        (false, true) => advised,
        (false, false) => None,
    }
}

fn name(pools: &BTreeMap<Page, u64>, low_latency_disks: bool) -> String {
    let mut name = String::new();
    for page in pools.keys() {
        name += &format!("-{}", page.name().to_lowercase());
    }
    if low_latency_disks {
        name += "-low-latency-disks";
    }
    if name.is_empty() { "general".to_owned() } else { format!("database{name}") }
}

/// The class of a node, before any node is counted.
fn class_of(draft: &Draft) -> Class {
    let mut labels = BTreeMap::from([(CLASS_LABEL.to_owned(), draft.class.clone())]);
    for page in draft.pools.keys() {
        labels.insert(format!("{LABEL}-{}", page.name()), "true".to_owned());
    }
    let taint = format!("{TAINT_KEY}={TAINT_VALUE}:NoSchedule");
    Class {
        name: draft.class.clone(),
        nodes: 0,
        pools: draft
            .pools
            .keys()
            .map(|page| ClassPool { size_bytes: page.bytes(), pages: 0 })
            .collect(),
        low_latency_disks: draft.low_latency_disks,
        labels,
        taints: if draft.pools.is_empty() { Vec::new() } else { vec![taint] },
    }
}

fn placed(draft: &Draft, need: &Need) -> Placed {
    Placed {
        node: draft.seen.node.to_owned(),
        id: need.database.id.clone(),
        class: draft.class.clone(),
        huge_pages: need
            .pages
            .map(|(page, pages)| (format!("hugepages-{}", page.name()), page.quantity(pages))),
        memory_bytes: memory_beside(&draft.seen.snapshot.host, need.database, need.pages),
    }
}

/// Where the memory of a node goes with the pools of its class.
fn balance(draft: &Draft, class: &Class, databases: Bytes) -> Result<Balance, ClassesError> {
    let node = draft.seen.node;
    let host = &draft.seen.snapshot.host;
    let unknown = |what, why: Option<String>| {
        let why = why.unwrap_or_else(|| "not read".to_owned());
        ClassesError::Unknown { node: node.to_owned(), what, why }
    };
    let memory =
        host.memory.value().ok_or_else(|| unknown("the size of its memory", host.memory.why()))?;
    let available = memory.available_bytes.value();
    let available = available
        .ok_or_else(|| unknown("the available part of its memory", memory.available_bytes.why()))?;
    let pools = host
        .hugepages
        .value()
        .ok_or_else(|| unknown("the size of its pools", host.hugepages.why()))?;
    let held: Option<Bytes> = pools
        .iter()
        .filter(|pool| pool.node.is_none())
        .map(bytes_of)
        .collect::<Option<Vec<_>>>()
        .map(|all| all.into_iter().sum());
    let held = held.ok_or_else(|| unknown("the size of its pools", None))?;
    let own = held_now(&draft.seen.snapshot.databases);
    // What cannot be told apart stays with the others: nothing is counted as free that is not.
    let others = memory.total_bytes - *available - held - own;
    let planned =
        class.pools.iter().map(|pool| Bytes(pool.pages.saturating_mul(pool.size_bytes.0))).sum();
    Balance::new(memory.total_bytes, planned, databases, others).map_err(|missing| {
        ClassesError::Overcommitted {
            node: node.to_owned(),
            class: class.name.clone(),
            missing,
            parts: [memory.total_bytes, planned, databases, others],
        }
    })
}

fn bytes_of(pool: &Pool) -> Option<Bytes> {
    Some(Bytes(pool.total.value()?.saturating_mul(pool.size_bytes.0)))
}

/// What databases hold now beside pools: what their groups cannot free, each group once, else what a main process
/// has.
fn held_now(databases: &[Database]) -> Bytes {
    let mut seen = BTreeSet::new();
    let one = |database: &Database| {
        let groups = database.cgroup.value().and_then(|cgroup| cgroup.memory.value());
        let group = groups.and_then(|groups| groups.first());
        match group.and_then(|group| Some((group, group.unreclaimable()?))) {
            Some((group, bytes)) => seen.insert(group.cgroup.clone()).then_some(bytes),
            None => database.memory.resident_bytes.value().copied(),
        }
    };
    databases.iter().filter_map(one).sum()
}
