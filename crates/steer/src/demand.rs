//! What each database uses, watched for a while, and the CPUs that are proposed for it.

use crate::proposal::{Demand, TooFew, propose};
use crate::resolve::Candidate;
use crate::threads::{Machine, Threads};
use crate::topology::Topology;
use crate::usage::Usage;
use std::time::Instant;
use untax_core::cpus::Cpus;
use untax_core::host::HostFacts;
use untax_core::placement::OnNode;
use untax_host::Host;

/// What each candidate used while `pass` lasted. One that ended meanwhile used nothing, and is left without
/// CPUs.
pub fn demands(candidates: &[Candidate], pass: impl FnOnce()) -> Vec<Demand> {
    let mut machine = Machine::live();
    machine.look();
    let roots: Vec<u32> = candidates.iter().map(|candidate| candidate.pid).collect();
    let watch = |candidate: &Candidate| -> Option<(Threads, Usage)> {
        let mut threads = Threads::of(&machine.host, candidate.pid).into_value()?;
        threads.find(&machine, &roots);
        let mut usage = Usage::default();
        usage.choose(&machine.host, machine.layout.as_ref(), candidate.pid, threads.pids());
        usage.spend_ns(&machine.host, threads.pids());
        Some((threads, usage))
    };
    let mut watched: Vec<_> = candidates.iter().map(watch).collect();
    let began = Instant::now();
    pass();
    machine.look();
    let mut all = Vec::new();
    for (candidate, watched) in candidates.iter().zip(&mut watched) {
        let allowed = machine.allowed(candidate.pid).unwrap_or_default();
        let used_cpus = watched.as_mut().map_or(0.0, |(threads, usage)| {
            threads.find(&machine, &roots);
            let spent_ns = usage.spend_ns(&machine.host, threads.pids());
            spent_ns as f64 / began.elapsed().as_nanos() as f64
        });
        let memory = candidate.memory.value().map(Vec::as_slice).unwrap_or_default();
        all.push(Demand { allowed, used_cpus, node: most(memory) });
    }
    all
}

/// The node with more than half of the memory; none where it is spread.
fn most(memory: &[OnNode]) -> Option<u32> {
    let all: u64 = memory.iter().map(|on| on.bytes.0).sum();
    memory.iter().find(|on| on.bytes.0 * 2 > all).map(|on| on.node)
}

/// The CPUs that are proposed for each of these demands on this machine.
pub fn preferred_cpus(
    host: &Host,
    facts: &HostFacts,
    demands: &[Demand],
) -> Result<Vec<Cpus>, TooFew> {
    propose(&Topology::read(host, facts), demands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Bytes;

    #[test]
    fn memory_that_is_spread_is_on_no_node() {
        let on = |node: u32, bytes: u64| OnNode { node, bytes: Bytes(bytes) };
        assert_eq!(most(&[on(0, 4), on(1, 5)]), Some(1));
        assert_eq!(most(&[on(0, 5), on(1, 5)]), None);
        assert_eq!(most(&[]), None);
    }
}
