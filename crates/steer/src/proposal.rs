//! Preferred CPUs for each instance, from the machine and from what each uses.

use crate::topology::Topology;
use std::collections::BTreeMap;
use untax_core::cpus::Cpus;

/// What a proposal needs to know of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The CPUs that it may use.
    pub allowed: Cpus,
    /// CPU time that it used, in CPUs.
    pub used_cpus: f64,
    /// The node that most of its memory is on, where that is known.
    pub node: Option<u32>,
}

/// There is no partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{instances} databases do not fit on {cores} cores; name fewer of them with --instance")]
pub struct TooFew {
    instances: usize,
    cores: usize,
}

/// Parts the cores among the instances: each gets whole cores, in proportion to what it uses and one at
/// least, near each other and near its memory.
pub fn propose(topology: &Topology, demands: &[Demand]) -> Result<Vec<Cpus>, TooFew> {
    let allowed = demands.iter().fold(Cpus::default(), |all, demand| all.or(&demand.allowed));
    let mut free = cores(topology, &allowed);
    let counts = counts(free.len(), demands)
        .ok_or(TooFew { instances: demands.len(), cores: free.len() })?;
    // The largest first: it is the hardest to keep together.
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| counts[*b].cmp(&counts[*a]).then(a.cmp(b)));
    let mut parts = vec![Cpus::default(); demands.len()];
    for place in order {
        let demand = &demands[place];
        let anchor = anchor(topology, &free, demand);
        let mut taken = 0;
        for cpu in topology.nearest(&anchor, &demand.allowed) {
            let core = topology.place(cpu).map_or(cpu, |place| place.core);
            if taken == counts[place] {
                break;
            }
            if let Some(core) = free.remove(&core) {
                parts[place] = parts[place].or(&core);
                taken += 1;
            }
        }
        if taken == 0 {
            return Err(TooFew { instances: demands.len(), cores: free.len() });
        }
    }
    Ok(parts)
}

/// The hardware threads of each core.
fn cores(topology: &Topology, allowed: &Cpus) -> BTreeMap<u32, Cpus> {
    let mut cores: BTreeMap<u32, Cpus> = BTreeMap::new();
    for cpu in allowed.iter() {
        let core = topology.place(cpu).map_or(cpu, |place| place.core);
        let own = cores.entry(core).or_default();
        *own = own.or(&std::iter::once(cpu).collect());
    }
    cores
}

/// Cores of each: one, and of the others a part in proportion to its use (largest remainders first).
fn counts(cores: usize, demands: &[Demand]) -> Option<Vec<usize>> {
    let spare = cores.checked_sub(demands.len())? as f64;
    // Idle ones count a little, so that equal ones get equal parts.
    let weights: Vec<f64> = demands.iter().map(|demand| demand.used_cpus.max(0.01)).collect();
    let all: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.iter().map(|weight| spare * weight / all).collect();
    let mut counts: Vec<usize> = shares.iter().map(|share| 1 + share.floor() as usize).collect();
    let mut rest: Vec<usize> = (0..demands.len()).collect();
    rest.sort_by(|a, b| shares[*b].fract().total_cmp(&shares[*a].fract()).then(a.cmp(b)));
    let given: usize = counts.iter().sum();
    for place in rest.into_iter().cycle().take(cores - given) {
        counts[place] += 1;
    }
    Some(counts)
}

/// Where an instance begins: on the node of its memory while that has a free core, otherwise on the node with
/// most free ones.
fn anchor(topology: &Topology, free: &BTreeMap<u32, Cpus>, demand: &Demand) -> Cpus {
    let on_node = |node: u32| -> Cpus {
        let cpus = free.values().fold(Cpus::default(), |all, core| all.or(core));
        cpus.and(&topology.of_node(node)).and(&demand.allowed)
    };
    let own = demand.node.map(on_node).filter(|cpus| !cpus.is_empty());
    let most = || {
        let nodes = topology.nodes().into_iter().map(on_node);
        nodes.max_by(|a, b| a.len().cmp(&b.len()).then(b.cmp(a))).unwrap_or_default()
    };
    own.unwrap_or_else(most).iter().take(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demand(used_cpus: f64, node: Option<u32>) -> Demand {
        Demand { allowed: (0..16).collect(), used_cpus, node }
    }

    fn lists(demands: &[Demand]) -> Vec<String> {
        let parts = propose(&Topology::uniform(2, 8), demands).unwrap();
        parts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_alike_get_a_node_each() {
        assert_eq!(lists(&[demand(1.0, None), demand(1.0, None)]), ["0-7", "8-15"]);
        assert_eq!(lists(&[demand(1.0, Some(1)), demand(1.0, Some(0))]), ["8-15", "0-7"]);
    }

    #[test]
    fn more_use_gets_more_cores() {
        let parts =
            propose(&Topology::uniform(2, 8), &[demand(2.0, None), demand(6.0, None)]).unwrap();
        assert_eq!(parts.iter().map(Cpus::len).collect::<Vec<_>>(), [5, 11]);
    }

    #[test]
    fn more_databases_than_cores_are_refused() {
        let allowed: Cpus = (0..2).collect();
        let three = vec![Demand { allowed, used_cpus: 1.0, node: None }; 3];
        let said = propose(&Topology::uniform(1, 2), &three).unwrap_err().to_string();
        assert!(said.starts_with("3 databases do not fit on 2 cores"), "{said}");
    }

    proptest! {
        #[test]
        fn parts_are_apart_and_whole(
            used in proptest::collection::vec(0.0..9.0f64, 1..8),
            nodes in 1..4u32,
        ) {
            let topology = Topology::uniform(nodes, 8);
            let all = topology.cpus();
            let demands: Vec<Demand> = used
                .iter()
                .map(|used| Demand { allowed: all.clone(), used_cpus: *used, node: None })
                .collect();
            let parts = propose(&topology, &demands).unwrap();
            let sum: usize = parts.iter().map(Cpus::len).sum();
            let union = parts.iter().fold(Cpus::default(), |all, part| all.or(part));
            prop_assert!(parts.iter().all(|part| !part.is_empty()));
            prop_assert_eq!((sum, union), (all.len(), all));
        }
    }
}
