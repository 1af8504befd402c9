//! `numa-bind`: a database and its memory on one NUMA node, or its memory spread over all. It takes a
//! restart, and a unit's manager or an operator starts the database: it is handed over. Sources:
//! systemd.exec(5), `NUMAPolicy=`; numactl(8); kubernetes.io, topology manager.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, file_name, told};
use crate::sizing::POOL_SHARE;
use crate::systemd;
use untax_core::Database;
use untax_core::host::NumaNode;
use untax_core::plan::Task;

pub const REMEDY: Remedy = Remedy {
    id: "numa-bind",
    summary: "CPUs and memory of a database on one NUMA node, from its next start",
    answers: &["numa-bind"],
    plan,
};

fn plan(case: &Case) -> Draft {
    let tasks = case.concerned().map(|database| task(case, database));
    Draft { tasks: tasks.collect(), ..Draft::default() }
}

fn task(case: &Case, database: &Database) -> Task {
    let node = node_for(case, database);
    let (what, policy, command) = match node {
        Some(node) => (
            format!("its CPUs and memory on NUMA node {}", node.node),
            format!("NUMAPolicy=bind\nNUMAMask={0}\nCPUAffinity=numa\n", node.node),
            format!("numactl --cpunodebind={0} --membind={0}", node.node),
        ),
        None => (
            "its memory spread over all NUMA nodes, as it fits on none".to_owned(),
            "NUMAPolicy=interleave\nNUMAMask=all\n".to_owned(),
            "numactl --interleave=all".to_owned(),
        ),
    };
    let groups = database.cgroup.value().and_then(|cgroup| cgroup.paths.values().next());
    let unit = groups.and_then(|group| systemd::unit(group));
    let (how, file) = match (&database.pod, unit) {
        (Some(_), _) => (
            "guaranteed QoS, and the kubelet's topologyManagerPolicy: single-numa-node".to_owned(),
            None,
        ),
        (None, Some((unit, "Service"))) => {
            let text = format!("# Made by untax: systemctl edit {unit}\n[Service]\n{policy}");
            let name = file_name(database, "numa.conf");
            (format!("add {name} to {unit} (systemd 243 or newer), restart it"), Some((name, text)))
        }
        _ => (format!("start it with {command}"), None),
    };
    Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!("{}: {what}: {how}", told(database)),
        databases: vec![database.id.clone()],
        file,
    }
}

/// The node that has most of its memory, if all of it fits there.
fn node_for<'a>(case: &Case<'a>, database: &Database) -> Option<&'a NumaNode> {
    let memory = database.placement.value()?.memory.value()?;
    let all: u64 = memory.iter().map(|on| on.bytes.0).fold(0, u64::saturating_add);
    let most = memory.iter().max_by_key(|on| on.bytes)?;
    let nodes = case.snapshot.host.numa.value()?;
    let node = nodes.iter().find(|node| node.node == most.node)?;
    let holds = node.total_bytes.value()?.0 as f64 * POOL_SHARE;
    (all as f64 <= holds).then_some(node)
}
