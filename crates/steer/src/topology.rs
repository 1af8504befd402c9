//! Which CPUs are near each other: hardware threads of a core, a cache, a NUMA node.

use std::collections::BTreeMap;
use untax_core::cpus::Cpus;
use untax_core::host::{HostFacts, NumaNode};
use untax_host::Host;

const CPUS: &str = "/sys/devices/system/cpu";

/// The most levels of caches that are looked for.
const CACHES: u32 = 8;

/// Where each CPU of a machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    places: BTreeMap<u32, Place>,
    /// The distance of each node to each, as the firmware gives it.
    distances: BTreeMap<(u32, u32), u32>,
}

/// Where a CPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The lowest CPU of its core.
    pub core: u32,
    /// The lowest CPU of those that share its last-level cache.
    pub cache: u32,
    /// Its NUMA node.
    pub node: u32,
}

impl Topology {
    /// The CPUs that are online. A CPU whose core or cache is not known is alone there, as is the case in
    /// many virtual machines; one whose node is not known is on node 0.
    pub fn read(host: &Host, facts: &HostFacts) -> Self {
        let nodes = facts.numa.value().map(Vec::as_slice).unwrap_or_default();
        let online = untax_host::cgroup::cpus::online(host).into_value().unwrap_or_default();
        let place = |cpu: u32| Place {
            core: first(host, &format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"), cpu),
            cache: last_cache(host, cpu),
            node: nodes.iter().find(|node| node.has_cpu(cpu)).map_or(0, |node| node.node),
        };
        let places = online.iter().map(|cpu| (cpu, place(cpu))).collect();
        Self { places, distances: distances(nodes) }
    }

    /// A machine with so many nodes of so many cores, each with one hardware thread and each node with one
    /// cache: for models and tests.
    pub fn uniform(nodes: u32, cores: u32) -> Self {
        let place = |cpu: u32| Place { core: cpu, cache: cpu / cores * cores, node: cpu / cores };
        let places = (0..nodes * cores).map(|cpu| (cpu, place(cpu))).collect();
        Self { places, distances: BTreeMap::new() }
    }

    /// All CPUs.
    pub fn cpus(&self) -> Cpus {
        self.places.keys().copied().collect()
    }

    /// Where a CPU is.
    pub fn place(&self, cpu: u32) -> Option<Place> {
        self.places.get(&cpu).copied()
    }

    /// The CPUs of a node.
    pub fn of_node(&self, node: u32) -> Cpus {
        self.places.iter().filter(|(_, place)| place.node == node).map(|(cpu, _)| *cpu).collect()
    }

    /// The nodes that have CPUs, ascending.
    pub fn nodes(&self) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.places.values().map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// These CPUs, the nearest to `home` first: those that share a cache with it, then its nodes, then other
    /// nodes by their distance; hardware threads of a core stand together.
    pub fn nearest(&self, home: &Cpus, candidates: &Cpus) -> Vec<u32> {
        let mut near: Vec<(u32, u32, u32, u32)> = candidates
            .iter()
            .map(|cpu| {
                let place = self.place(cpu).unwrap_or(Place { core: cpu, cache: cpu, node: 0 });
                (self.distance(home, place), place.cache, place.core, cpu)
            })
            .collect();
        near.sort_unstable();
        near.into_iter().map(|(.., cpu)| cpu).collect()
    }

    /// How far a place is from the nearest CPU of `home`: 0 in the same cache, then 1 in the same node, then
    /// the distance of the nodes.
    fn distance(&self, home: &Cpus, place: Place) -> u32 {
        let from = home.iter().filter_map(|cpu| self.place(cpu));
        let distances = from.map(|from| match from {
            from if from.cache == place.cache => 0,
            from if from.node == place.node => 1,
            from => self.distances.get(&(from.node, place.node)).copied().unwrap_or(u32::MAX),
        });
        distances.min().unwrap_or(u32::MAX)
    }
}

fn first(host: &Host, path: &str, otherwise: u32) -> u32 {
    let cpus: Option<Cpus> = host.text(path).into_value().and_then(|text| text.parse().ok());
    cpus.and_then(|cpus| cpus.iter().next()).unwrap_or(otherwise)
}

/// The lowest CPU of those with which a CPU shares its cache of the highest level.
fn last_cache(host: &Host, cpu: u32) -> u32 {
    let level = |index: u32| -> Option<(u32, String)> {
        let cache = format!("{CPUS}/cpu{cpu}/cache/index{index}");
        let level = host.text(&format!("{cache}/level")).into_value()?.trim().parse().ok()?;
        Some((level, cache))
    };
    let last = (0..CACHES).map_while(level).max();
    last.map_or(cpu, |(_, cache)| first(host, &format!("{cache}/shared_cpu_list"), cpu))
}

fn distances(nodes: &[NumaNode]) -> BTreeMap<(u32, u32), u32> {
    let mut all = BTreeMap::new();
    for from in nodes {
        let row = from.distances.value().map(Vec::as_slice).unwrap_or_default();
        all.extend(nodes.iter().zip(row).map(|(to, distance)| ((from.node, to.node), *distance)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::{Record, facts};

    /// Two nodes of two caches of two cores of two threads.
    fn machine() -> Topology {
        let mut record = Record::default()
            .with_file("/sys/devices/system/cpu/online", "0-15\n")
            .with_file("/sys/devices/system/node/node0/cpulist", "0-7\n")
            .with_file("/sys/devices/system/node/node1/cpulist", "8-15\n")
            .with_file("/sys/devices/system/node/node0/distance", "10 21\n")
            .with_file("/sys/devices/system/node/node1/distance", "21 10\n");
        for cpu in 0..16u32 {
            let (core, cache) = (cpu / 2 * 2, cpu / 4 * 4);
            let file = |name: &str| format!("{CPUS}/cpu{cpu}/{name}");
            record = record
                .with_file(
                    &file("topology/thread_siblings_list"),
                    &format!("{core}-{}\n", core + 1),
                )
                .with_file(&file("cache/index0/level"), "1\n")
                .with_file(&file("cache/index0/shared_cpu_list"), &format!("{core}-{}\n", core + 1))
                .with_file(&file("cache/index1/level"), "3\n")
                .with_file(
                    &file("cache/index1/shared_cpu_list"),
                    &format!("{cache}-{}\n", cache + 3),
                );
        }
        let host = Host::from_record(record);
        Topology::read(&host, &facts::read_all(&host))
    }

    #[test]
    fn the_nearest_share_a_cache_then_a_node() {
        let machine = machine();
        assert_eq!(machine.place(6), Some(Place { core: 6, cache: 4, node: 0 }));
        let home: Cpus = "4-5".parse().unwrap();
        let others = machine.cpus().without(&home);
        let near = machine.nearest(&home, &others);
        assert_eq!(near[..6], [6, 7, 0, 1, 2, 3]);
        assert_eq!((near.len(), near[6]), (14, 8));
    }

    #[test]
    fn a_machine_that_tells_nothing_has_cpus_that_are_alone() {
        let record = Record::default().with_file("/sys/devices/system/cpu/online", "0-1\n");
        let host = Host::from_record(record);
        let machine = Topology::read(&host, &facts::read_all(&host));
        assert_eq!(machine.place(1), Some(Place { core: 1, cache: 1, node: 0 }));
        assert_eq!(machine.nodes(), [0]);
    }
}
