//! Remedies that findings name: each is there, and gives a step or a task.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, gap, host, postgres, snapshot};
use untax_core::Reading::Present;
use untax_core::database::{Cgroup, Pod};
use untax_core::network::{Conntrack, ConntrackLimit};
use untax_core::placement::{OnNode, Placement};
use untax_core::plan::{Plan, Target};
use untax_core::{Bytes, Database, Snapshot};
use untax_remedies::Wish;

const UNIT: &str = "/system.slice/system-postgresql.slice/postgresql@15-main.service";

/// A PostgreSQL of 3 GiB in a unit, on a machine of 24 GiB on two nodes.
fn machine() -> Snapshot {
    let mut host = host("debian", "12", gap(), "");
    host.sysctls = Present([("kernel.numa_balancing".to_owned(), "1".to_owned())].into());
    let table = Conntrack { entries: 65_000, refused: None };
    host.conntrack = Present(ConntrackLimit { most: 65_536, table });
    let mut database = postgres(Bytes(3 << 30));
    database.cgroup =
        Present(Cgroup::unknown([("unified".to_owned(), UNIT.to_owned())].into(), "not read"));
    database.placement = Present(Placement {
        memory: Present(vec![
            OnNode { node: 0, bytes: Bytes(1 << 30) },
            OnNode { node: 1, bytes: Bytes(2 << 30) },
        ]),
        source: "numa_maps".to_owned(),
        tasks: Vec::new(),
        balancing: gap(),
    });
    snapshot(host, vec![database])
}

fn plan(snapshot: &Snapshot, remedy: &str) -> Plan {
    let check = check(snapshot, "a-rule", remedy);
    untax_remedies::plan("a-plan".to_owned(), &check, snapshot, &Wish::default()).unwrap()
}

/// The only task of a plan: what it says, and its file.
fn task(snapshot: &Snapshot, remedy: &str) -> (String, String) {
    let plan = plan(snapshot, remedy);
    assert_eq!((plan.steps.len(), plan.tasks.len()), (0, 1), "{remedy}");
    let task = plan.tasks.into_iter().next().unwrap();
    assert_eq!(task.remedy, remedy);
    (task.summary, task.file.map(|(_, text)| text).unwrap_or_default())
}

fn in_pod(mut snapshot: Snapshot) -> Snapshot {
    snapshot.databases[0].pod = Some(Pod { uid: "u".to_owned(), qos: "burstable".to_owned() });
    snapshot
}

#[test]
fn a_database_is_bound_to_the_node_that_holds_it() {
    let (summary, file) = task(&machine(), "numa-bind");
    assert!(summary.contains("NUMA node 1"), "{summary}");
    assert!(file.ends_with("[Service]\nNUMAPolicy=bind\nNUMAMask=1\nCPUAffinity=numa\n"), "{file}");
    let mut large = machine();
    let Present(placement) = &mut large.databases[0].placement else { unreachable!() };
    placement.memory = Present(vec![OnNode { node: 1, bytes: Bytes(11 << 30) }]);
    assert!(task(&large, "numa-bind").1.contains("NUMAPolicy=interleave"), "it fits on none");
    assert!(task(&in_pod(machine()), "numa-bind").0.contains("topologyManagerPolicy"));
}

#[test]
fn balancing_is_switched_off_where_it_is_plain_balancing() {
    let mut machine = machine();
    let made = plan(&machine, "numa-balancing");
    let first = &made.steps[0];
    let file = "/proc/sys/kernel/numa_balancing".to_owned();
    assert_eq!(first.target, Target::Value { file });
    assert_eq!((first.from.as_deref(), first.to.as_deref()), (Some("1"), Some("0")));
    assert!(made.steps[1].to.as_ref().unwrap().ends_with("kernel.numa_balancing = 0\n"));
    machine.host.sysctls = Present([("kernel.numa_balancing".to_owned(), "2".to_owned())].into());
    assert!(plan(&machine, "numa-balancing").steps.is_empty(), "slow memory needs it");
}

#[test]
fn a_connection_table_is_doubled_within_what_memory_allows() {
    let mut machine = machine();
    let to = |machine: &Snapshot| {
        plan(machine, "conntrack-max").steps.first().and_then(|step| step.to.clone())
    };
    assert_eq!(to(&machine).as_deref(), Some("131072"));
    let Present(conntrack) = &mut machine.host.conntrack else { unreachable!() };
    conntrack.most = 1 << 20;
    assert_eq!(to(&machine), None, "such a table would take a fiftieth of the memory");
}

#[test]
fn the_rest_is_handed_over() {
    let (summary, file) = task(&machine(), "memory-protection");
    assert!(summary.contains("protect 3 GiB"), "{summary}");
    for unit in ["system.slice", "system-postgresql.slice", "postgresql@15-main.service"] {
        assert!(file.contains(&format!("# systemctl edit {unit}\n")), "{file}");
    }
    assert_eq!(file.matches("MemoryLow=3072M").count(), 3);
    assert!(task(&in_pod(machine()), "memory-protection").0.contains("memory QoS"));
    assert!(task(&machine(), "cpu-weight").1.ends_with("[Service]\nCPUWeight=200\n"));
    assert!(task(&in_pod(machine()), "cpu-weight").0.contains("CPU request"));
    assert!(task(&machine(), "machine-id").1.contains("systemd-machine-id-setup"));
}

#[test]
fn without_its_cpus_a_pooler_has_no_size() {
    let mut machine = machine();
    let (summary, file) = task(&machine, "pooler");
    assert!(summary.contains("connections for each CPU") && file.is_empty(), "{summary}");
    machine.host.cpu = Present(untax_core::host::Cpu::unknown(8, "not read"));
    assert!(task(&machine, "pooler").1.contains("default_pool_size = 24\n"));
    let limited =
        Database { allowed_cpus: Present("0-1".to_owned()), ..machine.databases[0].clone() };
    machine.databases = vec![limited];
    assert!(task(&machine, "pooler").1.contains("default_pool_size = 6\n"), "of its two CPUs");
}
