//! `kubernetes`: what a database in a pod needs for huge pages: a patch of its pod template, a
//! script that prepares a node, and the labels and taints that bring the two together.
//!
//! All of it is handed over, for other hosts have to agree: the control plane places pods, and a
//! kubelet takes notice of a pool only when it starts. The rules are those of
//! kubernetes.io/docs/tasks/manage-hugepages/scheduling-hugepages.

use super::kubernetes_node::{self, LABEL, Page, REMEDY_ID, TAINT_KEY, TAINT_VALUE};
use crate::case::Case;
use crate::pool_plan::PoolPlan;
use crate::remedy::{Draft, Remedy, file_name, told};
use untax_core::host::HostFacts;
use untax_core::plan::Task;
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: REMEDY_ID,
    summary: "pod resources, node pools, labels and taints for databases in Kubernetes",
    answers: &["hugepage-pool", "cgroup-hugetlb-limit"],
    plan,
};

/// Memory for a pod of which nothing is known.
const SOME_MEMORY: Bytes = Bytes::GIB_1;

/// A database of which no limit is left must still start.
const LEAST_MEMORY: Bytes = Bytes::from_mib(256);

fn plan(case: &Case) -> Draft {
    // Nor would a node like this one have the room.
    if case.wants_no_pool() || matches!(PoolPlan::of(case), PoolPlan::TooLarge { .. }) {
        return Draft::default();
    }
    let needs: Vec<(&Database, Page, u64)> = case
        .concerned()
        .filter(|database| database.pod.is_some())
        .filter_map(|database| need(case, database))
        .collect();
    let mut draft = Draft::default();
    let mut sizes: Vec<Page> = needs.iter().map(|(_, page, _)| *page).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // A patched pod finds no node before there is one.
    for page in sizes {
        let of_size = needs.iter().filter(|(_, size, _)| *size == page);
        let pages = of_size.map(|(_, _, pages)| pages).sum();
        draft.tasks.extend(kubernetes_node::tasks(case, page, pages));
    }
    for (database, page, pages) in &needs {
        draft.tasks.push(Task {
            remedy: REMEDY_ID.to_owned(),
            summary: format!(
                "{}: hugepages-{}: {} as request and limit of its container",
                told(database),
                page.name(),
                page.quantity(*pages)
            ),
            databases: vec![database.id.clone()],
            file: Some((
                file_name(database, "pod-patch.yaml"),
                patch(case, database, *page, *pages),
            )),
        });
    }
    draft
}

/// The size and number of pages that a database needs. A limit is about the size that it asks for
/// now; other findings are about the advised one.
fn need<'a>(case: &Case, database: &'a Database) -> Option<(&'a Database, Page, u64)> {
    let asked = database.huge_pages.value().and_then(|use_of| use_of.size_bytes.value().copied());
    let limited = !case.asks(database, "hugepage-pool");
    let page = asked.filter(|_| limited).or_else(|| case.page())?;
    let pages = case.pages(database, page)?;
    (pages > 0).then_some((database, Page(page), pages))
}

/// A strategic merge patch of what owns the pod.
fn patch(case: &Case, database: &Database, page: Page, pages: u64) -> String {
    let resource = format!("hugepages-{}", page.name());
    let quantity = page.quantity(pages);
    let memory = format!("{}Mi", memory(case, database, page, pages).0.div_ceil(1 << 20));
    let engine = &database.engine;
    let volume = needs_volume(database);
    let mut text = format!(
        "# Made by untax: kubectl patch statefulset NAME --patch-file THIS-FILE\n\
         # Where an operator owns the pods, put these fields into its resource instead.\n\
         # Prepare a node first. A pod that no other node took meanwhile is Pending, and stays as it\n\
         # was when its StatefulSet is patched: kubectl delete pod NAME-0 then.\n\
         # Huge pages: request and limit must be equal, and a multiple of the page.\n\
         # memory is what is left beside them: they do not count in it{}.\n\
         # A list of tolerations is replaced by this one: add those that the pod has.\n",
        if counts_in_memory(&case.snapshot.host) { " by default, but do on this node" } else { "" }
    );
    text += &notes(database);
    text += &format!(
        "spec:\n  template:\n    spec:\n      nodeSelector:\n        {LABEL}-{}: \"true\"\n",
        page.name()
    );
    text += &format!(
        "      tolerations:\n        - key: {TAINT_KEY}\n          operator: Equal\n          \
         value: {TAINT_VALUE}\n          effect: NoSchedule\n"
    );
    // The name of the container is not known here.
    text += &format!("      containers:\n        - name: {engine} # the database's container\n");
    text += "          resources:\n";
    for (kind, cpu) in [("requests", Some(request(database))), ("limits", limit(database))] {
        text += &format!("            {kind}:\n");
        text += &cpu.map(|cpu| format!("              cpu: {cpu}\n")).unwrap_or_default();
        text += &format!("              memory: {memory}\n              {resource}: {quantity}\n");
    }
    if volume {
        let medium = page.name();
        text += &format!(
            "          volumeMounts:\n            - name: huge-pages\n              \
             mountPath: /dev/hugepages\n      volumes:\n        - name: huge-pages\n          \
             emptyDir:\n            medium: HugePages-{medium}\n"
        );
    }
    text
}

/// Who maps huge pages without a file needs no mounted volume.
fn needs_volume(database: &Database) -> bool {
    !matches!(database.engine.as_str(), "postgres" | "mysql" | "oracle")
}

fn notes(database: &Database) -> String {
    match database.engine.as_str() {
        "postgres" => "# PostgreSQL maps huge pages by itself (MAP_HUGETLB): no volume of medium \
                       HugePages is\n# needed. Parallel queries share memory in /dev/shm, 64 MiB \
                       in a container unless an emptyDir\n# of medium Memory is mounted there.\n"
            .to_owned(),
        "mysql" if database.product == "MariaDB" => {
            "# MariaDB maps huge pages by itself: no volume is needed.\n".to_owned()
        }
        "mysql" | "oracle" => "# No volume is needed. Releases that ask by shmget need the \
                               node's vm.hugetlb_shm_group among\n# the pod's \
                               securityContext.supplementalGroups.\n"
            .to_owned(),
        _ => String::new(),
    }
}

fn counts_in_memory(host: &HostFacts) -> bool {
    host.cgroup.value().is_some_and(|layout| layout.memory_hugetlb_accounting)
}

/// What the pod asks for: its limit, where huge pages count in it, else what it needs beside them.
fn memory(case: &Case, database: &Database, page: Page, pages: u64) -> Bytes {
    let host = &case.snapshot.host;
    match memory_limit(database) {
        Some(limit) if counts_in_memory(host) => limit.max(bytes(page, pages)),
        _ => memory_beside(host, database, Some((page, pages))),
    }
}

/// What a database needs beside the huge pages that it is to have: its limit without what moves out of it, or
/// what it holds and some.
pub fn memory_beside(host: &HostFacts, database: &Database, pages: Option<(Page, u64)>) -> Bytes {
    let own = &database.memory;
    let base = host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4);
    let on_small = own.page_size_bytes.value().is_none_or(|size| *size <= base);
    let shared = own.shared_bytes.value().copied().filter(|_| pages.is_some() && on_small);
    let moves = shared.unwrap_or_default();
    let left = match (memory_limit(database), own.resident_bytes.value()) {
        (Some(limit), _) if counts_in_memory(host) => {
            limit - pages.map_or(Bytes::default(), |(page, pages)| bytes(page, pages))
        }
        (Some(limit), _) => limit - moves,
        (None, Some(resident)) => SOME_MEMORY + (*resident - moves),
        (None, None) => SOME_MEMORY,
    };
    left.max(LEAST_MEMORY)
}

fn memory_limit(database: &Database) -> Option<Bytes> {
    database.cgroup.value()?.memory_limit_bytes.value().copied()
}

fn bytes(page: Page, pages: u64) -> Bytes {
    Bytes(pages.saturating_mul(page.bytes().0))
}

/// Huge pages are refused without a request for CPU or memory.
fn request(database: &Database) -> String {
    limit(database).unwrap_or_else(|| {
        "\"1\" # untax does not know it: put what the pod needs at least".to_owned()
    })
}

/// The limit that the pod has now.
fn limit(database: &Database) -> Option<String> {
    let limits = database.cgroup.value()?.cpu.value()?;
    let tightest = limits.iter().map(|limit| limit.cpus).min_by(f64::total_cmp)?;
    Some(format!("{}m", (tightest * 1000.0).round()))
}
