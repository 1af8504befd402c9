//! NUMA nodes.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading::{self, Absent};
use untax_core::host::{HostFacts, NumaNode};

pub(super) const FACT: Fact = Fact {
    id: "numa",
    summary: "CPUs, memory and distances of each NUMA node",
    source: "/sys/devices/system/node",
    privilege: "none",
    minimum_kernel: "2.6.32",
    cost: "three small files per node",
    read,
};

const NODES: &str = "/sys/devices/system/node";

fn read(host: &Host, facts: &mut HostFacts) {
    facts.numa = nodes(host)
        .map(|nodes| nodes.into_iter().map(|(node, path)| one(host, node, &path)).collect());
}

fn one(host: &Host, node: u32, path: &str) -> NumaNode {
    let meminfo = host.text(&format!("{path}/meminfo"));
    NumaNode {
        node,
        cpus: host.text(&format!("{path}/cpulist")).map(|text| text.trim().to_owned()),
        total_bytes: meminfo.as_ref().and_then(|text| formats::kib(text, "MemTotal:")),
        free_bytes: meminfo.as_ref().and_then(|text| formats::kib(text, "MemFree:")),
        distances: distances(host, &format!("{path}/distance")),
    }
}

fn distances(host: &Host, path: &str) -> Reading<Vec<u32>> {
    host.text(path).parse(path, |text| {
        let distances: Option<Vec<u32>> =
            text.split_ascii_whitespace().map(|distance| distance.parse().ok()).collect();
        distances.filter(|distances| !distances.is_empty())
    })
}

/// The number and directory of each node, ascending.
pub(super) fn nodes(host: &Host) -> Reading<Vec<(u32, String)>> {
    let node = |name: &String| {
        let number = name.strip_prefix("node")?.parse().ok()?;
        Some((number, format!("{NODES}/{name}")))
    };
    match host.names(NODES) {
        Absent(_) => Absent(format!("this kernel does not know NUMA: no {NODES}")),
        names => names.map(|names| {
            let mut nodes: Vec<_> = names.iter().filter_map(node).collect();
            nodes.sort_unstable();
            nodes
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use untax_core::Bytes;
    use untax_core::Reading::Present;

    #[test]
    fn nodes_are_in_the_order_of_their_numbers() {
        let mut record = Record::default().with_file("/sys/devices/system/node/online", "0,2,10\n");
        for node in [10, 2] {
            let path = format!("{NODES}/node{node}");
            let meminfo = format!(
                "Node {node} MemTotal:       {node}000 kB\nNode {node} MemFree:   {node}00 kB\n"
            );
            record = record
                .with_file(&format!("{path}/cpulist"), "0-15,32-47\n")
                .with_file(&format!("{path}/meminfo"), &meminfo)
                .with_file(&format!("{path}/distance"), "10 21\n");
        }
        // A node of persistent memory has no CPUs; garbage is no distance.
        record = record
            .with_file(&format!("{NODES}/node0/cpulist"), "\n")
            .with_file(&format!("{NODES}/node0/distance"), "10 x\n");
        let numa = super::super::read_all(&Host::from_record(record)).numa.into_value().unwrap();

        assert_eq!(numa.iter().map(|node| node.node).collect::<Vec<_>>(), [0, 2, 10]);
        assert_eq!(numa[0].cpus, Present(String::new()));
        assert!(matches!(numa[0].distances, Reading::Failed(_)));
        assert!(matches!(numa[0].total_bytes, Absent(_)));
        assert_eq!(numa[1].free_bytes, Present(Bytes::from_kib(200)));
        assert_eq!(numa[2].total_bytes, Present(Bytes::from_kib(10_000)));
        assert_eq!(numa[2].distances, Present(vec![10, 21]));
    }
}
