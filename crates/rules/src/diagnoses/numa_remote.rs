//! `numa-remote`: the database's memory is on another NUMA node than its threads.

use crate::evidence;
use crate::model::stall::percent;
use crate::model::without_tax::{self, Words};
use crate::rule::{Rule, Scope, TaxBase};
use std::collections::BTreeMap;
use untax_core::host::NumaNode;
use untax_core::placement::{OnNode, Placement};
use untax_core::window::Pair;
use untax_core::{Bytes, Diagnosis, Evidence, EvidenceKind, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "numa-remote",
    summary: "the database's memory is on another NUMA node than the threads that read it",
    what: "On a machine with several sockets, each socket has its own memory. A CPU reaches the \
           memory of another socket over a link: this takes longer, and all CPUs share the link. A \
           page stays on the node whose CPU touched it first. So a server that was started, filled \
           or restored on one node and runs on another reads everything over the link. A server \
           whose memory is all on one node has the bandwidth of that node only.",
    method: "The rule measures the share of the database's memory on nodes other than those of its \
             threads; no tax is measured.",
    measured: "The rule takes the places of memory from numa_maps of the process that used the \
               CPUs most, when reading takes less than 50 ms. Otherwise it takes them from \
               memory.numa_stat, if the database has a control group of its own. The rule takes \
               the places of threads from the CPUs that they may use, or were on at both ends of \
               the window. Each thread is weighted by the time it ran. The rule finds a database \
               when a fifth or more of evenly spread accesses would go to another node, and \
               threads or memory are on one node. The rule finds nothing where both are spread \
               over all nodes, because a large database has no other way. The cost of a remote \
               access would need hardware counters or a calibration on several nodes, so the tax \
               is unmeasured.",
    fix: "Keep a database that fits into one node on that node from its start, with CPUs and \
          memory. Use cpuset, numactl --cpunodebind --membind, NUMAPolicy= and CPUAffinity=, or \
          the kubelet's topology manager. Spread a larger database over all nodes (numactl \
          --interleave=all, innodb_numa_interleave).",
    sources: &[
        "kernel.org: admin-guide/mm/numa_memory_policy",
        "man7.org: numa(7), /proc/PID/numa_maps",
        "kernel.org: admin-guide/cgroup-v2, memory.numa_stat",
    ],
    privilege: "root, or the database's own user",
    minimum_kernel: "2.6.14 (numa_maps)",
    cost: "on machines with several nodes: numa_maps of one process, at most 50 ms of its memory \
           lock, and one stat for each of 256 threads",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// Less memory than this is in caches most of the time.
const WORTH_BYTES: Bytes = Bytes::from_mib(64);

/// Of the accesses; less is what any thread that was moved now and then has.
const WORTH_REMOTE: f64 = 0.2;

/// From here on, threads or memory count as being on one node.
const ON_ONE: f64 = 0.8;

/// Shares by node.
type Shares = BTreeMap<u32, f64>;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let nodes = match &window.end.host.numa {
        Reading::Present(nodes) if nodes.len() > 1 => nodes,
        // One node, or a kernel that knows none.
        Reading::Present(_) | Reading::Absent(_) => return Vec::new(),
        gap => return without_tax::unmeasured(RULE.id, None, gap.why().unwrap_or_default()),
    };
    window.databases().flat_map(|pair| evaluate_one(nodes, &pair)).collect()
}

fn evaluate_one(nodes: &[NumaNode], pair: &Pair) -> Vec<Diagnosis> {
    let id = Some(pair.end.id.as_str());
    let seen = pair.end.placement.as_ref().and_then(|placement| {
        let memory = placement.memory.as_ref();
        memory.and_then(|memory| cpu_shares(nodes, pair).map(|cpus| (placement, memory, cpus)))
    });
    let why = seen.why().unwrap_or_default();
    let Some((placement, memory, cpus)) = seen.into_value() else {
        return without_tax::unmeasured(RULE.id, id, why);
    };
    let all: Bytes = memory.iter().map(|on| on.bytes).sum();
    let memory = shares(memory.iter().map(|on: &OnNode| (on.node, on.bytes.0 as f64)));
    let near = |(node, share): (&u32, &f64)| share * memory.get(node).unwrap_or(&0.0);
    let remote = 1.0 - cpus.iter().map(near).sum::<f64>();
    let (running_on, running) = largest(&cpus);
    let (lying_on, lying) = largest(&memory);
    if all < WORTH_BYTES || remote < WORTH_REMOTE || (running < ON_ONE && lying < ON_ONE) {
        return Vec::new();
    }
    let afar = 1.0 - memory.get(&running_on).unwrap_or(&0.0);
    let (severity, summary, fix) = if running < ON_ONE || afar < WORTH_REMOTE {
        let summary = format!(
            "its threads run on several nodes, {} of its memory is on node {lying_on}",
            percent(lying)
        );
        (
            Severity::Low,
            summary,
            format!("keep its threads on node {lying_on}, or spread its memory (--interleave=all)"),
        )
    } else {
        let summary = format!(
            "{} of its memory is on other nodes than node {running_on}, where its threads run",
            percent(afar)
        );
        let severity = if remote < 0.5 { Severity::Low } else { Severity::Medium };
        (
            severity,
            summary,
            format!(
                "bind its CPUs and its memory to one node before it starts; now migratepages {} all {running_on}",
                pair.end.pid
            ),
        )
    };
    let words = Words {
        severity,
        summary,
        fix,
        evidence: evidence(placement, &cpus, &memory, remote),
        gain: None,
        remedy: Some("numa-bind"),
        why: "the cost of an access to another node needs hardware counters or a calibration on \
              several nodes",
    };
    without_tax::finding_and_gap(RULE.id, id, words)
}

fn evidence(placement: &Placement, cpus: &Shares, memory: &Shares, remote: f64) -> Vec<Evidence> {
    let on = |kind: &EvidenceKind, shares: &Shares, source: &str| -> Vec<Evidence> {
        let one =
            |(node, share): (&u32, &f64)| Evidence::new(kind, *share, source).of(&node.to_string());
        shares.iter().map(one).collect()
    };
    let remote = Evidence::new(&evidence::NUMA_REMOTE, remote, "memory x threads");
    let threads =
        on(&evidence::NUMA_THREADS, cpus, "Cpus_allowed_list, or the CPU in /proc/PID/stat");
    let memory = on(&evidence::NUMA_MEMORY, memory, &placement.source);
    std::iter::once(remote).chain(memory).chain(threads).collect()
}

/// Where its threads ran: the node that they may run on, or what of their time was on each.
fn cpu_shares(nodes: &[NumaNode], pair: &Pair) -> Reading<Shares> {
    let placement = |database: &untax_core::Database| database.placement.clone();
    placement(pair.end).and_then(|end| {
        let allowed = pair.end.allowed_cpus.value();
        let only = nodes.iter().find(|node| allowed.is_some_and(|list| node.has_all_of(list)));
        if let Some(only) = only {
            return Reading::Present([(only.node, 1.0)].into());
        }
        let before = pair.start.and_then(|start| placement(start).into_value());
        let before = before.map(|before| before.tasks).unwrap_or_default();
        let mut ran: Vec<(u32, f64)> = Vec::new();
        let mut add = |cpu: u32, ticks: f64| {
            ran.extend(nodes.iter().find(|node| node.has_cpu(cpu)).map(|n| (n.node, ticks)));
        };
        for task in &end.tasks {
            let known = before.iter().find(|before| before.id == task.id);
            let ticks = task.ticks.saturating_sub(known.map_or(0, |known| known.ticks)) as f64;
            add(task.cpu, ticks / 2.0);
            add(known.map_or(task.cpu, |known| known.cpu), ticks / 2.0);
        }
        let shares = shares(ran.into_iter());
        if shares.is_empty() {
            return Reading::Absent("its threads used no CPU during the window".to_owned());
        }
        Reading::Present(shares)
    })
}

/// Amounts by node as shares of them all; none of nothing.
fn shares(amounts: impl Iterator<Item = (u32, f64)>) -> Shares {
    let mut sums = Shares::new();
    for (node, amount) in amounts.filter(|(_, amount)| *amount > 0.0) {
        *sums.entry(node).or_default() += amount;
    }
    let all: f64 = sums.values().sum();
    sums.into_iter().map(|(node, sum)| (node, sum / all)).collect()
}

fn largest(shares: &Shares) -> (u32, f64) {
    let largest = shares.iter().max_by(|a, b| a.1.total_cmp(b.1));
    largest.map_or((0, 0.0), |(node, share)| (*node, *share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::Finding;
    use untax_core::placement::Task;

    /// Memory in MiB on two nodes; the CPUs allowed; each thread's CPU at the end, and for how
    /// long it ran. Node 0 has CPUs 0 and 1, node 1 has 2 and 3.
    fn placed(memory: [u64; 2], allowed: &str, tasks: &[(u32, u64)]) -> Vec<Diagnosis> {
        let mut window = test_window::postgres();
        window.end.host.numa = Reading::Present(test_window::two_nodes());
        let on =
            |(node, mib): (usize, &u64)| OnNode { node: node as u32, bytes: Bytes::from_mib(*mib) };
        let at = |ran: u64| Placement {
            memory: Reading::Present(memory.iter().enumerate().map(on).collect()),
            source: "/proc/7/numa_maps".to_owned(),
            tasks: tasks
                .iter()
                .enumerate()
                .map(|(id, (cpu, ticks))| Task { id: id as u32, cpu: *cpu, ticks: 7 + ran * ticks })
                .collect(),
            balancing: Reading::Absent("not read".to_owned()),
        };
        window.end.databases[0].allowed_cpus = Reading::Present(allowed.to_owned());
        window.start.databases[0].placement = Reading::Present(at(0));
        window.end.databases[0].placement = Reading::Present(at(1));
        evaluate(&window)
    }

    fn found(memory: [u64; 2], allowed: &str, tasks: &[(u32, u64)]) -> Vec<Finding> {
        test_window::found(placed(memory, allowed, tasks))
    }

    #[test]
    fn memory_on_the_other_node_is_found_and_beside_the_threads_is_not() {
        let findings = found([10, 990], "0-1", &[]);
        assert_eq!(findings[0].severity, Severity::Medium);
        assert!(
            findings[0].summary.starts_with("99 % of its memory is on other nodes than node 0")
        );
        assert!(findings[0].tax.is_none(), "nothing is invented");
        assert!(found([990, 10], "0-1", &[]).is_empty());
        assert!(found([0, 40], "0-1", &[]).is_empty(), "too small to matter");
    }

    #[test]
    fn threads_count_by_the_time_they_ran() {
        // A thread that slept on CPU 0 does not count.
        let ran = [(0, 0), (2, 500), (3, 400)];
        assert_eq!(found([1000, 0], "0-3", &ran)[0].severity, Severity::Medium);
        assert!(found([0, 1000], "0-3", &ran).is_empty());
        let even = [(0, 500), (2, 500)];
        assert!(found([500, 500], "0-3", &even).is_empty(), "a large one has no other way");
        assert!(
            found([1000, 0], "0-3", &even)[0].summary.starts_with("its threads run on several")
        );
        let strays = found([950, 50], "0-3", &[(0, 820), (2, 180)]);
        assert!(
            strays[0].summary.contains("95 % of its memory is on node 0"),
            "{}",
            strays[0].summary
        );
    }

    #[test]
    fn one_node_says_nothing_and_idle_threads_say_why() {
        let idle = placed([1000, 0], "0-3", &[(2, 0)]);
        assert!(
            matches!(&idle[..], [Diagnosis { says: untax_core::finding::Says::Unmeasured(gap), .. }]
            if gap.why.contains("used no CPU"))
        );
        let mut window = test_window::postgres();
        window.end.host.numa = Reading::Present(test_window::two_nodes()[..1].to_vec());
        assert!(evaluate(&window).is_empty());
    }
}
