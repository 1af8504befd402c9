//! Facts of the machine: one file each, listed in [`FACTS`]. Facts read, they never judge.

mod cgroup;
mod cluster_network;
mod conntrack;
mod cpu;
mod cpu_time;
mod cpufreq;
mod cpuid;
mod cpuidle;
mod cpuinfo;
mod distribution;
mod fact;
mod formats;
mod haltpoll;
mod hugepages;
mod identity;
mod kernel;
mod links;
mod memory;
mod numa;
mod page_sizes;
mod power_limits;
mod pressure;
mod sandbox;
mod sysctls;
mod thp;
mod thp_setter;
mod tlb;
mod virtualization;
mod vm_counts;

use crate::Host;
pub use cgroup::layout as cgroup_layout;
pub use cpu_time::{context_switches, of_machine as machine_cpu_time};
pub use cpuidle::{knob as idle_knob, sleeps as cpu_sleeps};
pub use fact::Fact;
use untax_core::host::HostFacts;
pub use virtualization::INITIAL_PID_NAMESPACE;

/// All facts.
pub static FACTS: &[Fact] = &[
    kernel::FACT,
    cpu::FACT,
    tlb::FACT,
    page_sizes::FACT,
    hugepages::FACT,
    thp::FACT,
    thp_setter::FACT,
    numa::FACT,
    memory::FACT,
    distribution::FACT,
    virtualization::FACT,
    cgroup::FACT,
    cpu_time::FACT,
    sysctls::FACT,
    vm_counts::FACT,
    pressure::FACT,
    links::FACT,
    cluster_network::FACT,
    conntrack::FACT,
    identity::FACT,
    sandbox::FACT,
    cpuidle::FACT,
    haltpoll::FACT,
    cpufreq::FACT,
    power_limits::FACT,
];

/// Reads all facts of a host.
pub fn read_all(host: &Host) -> HostFacts {
    let mut facts = HostFacts::unknown("not read");
    for fact in FACTS {
        (fact.read)(host, &mut facts);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use std::collections::BTreeSet;

    #[test]
    fn the_list_is_complete_and_says_everything() {
        let ids: BTreeSet<&str> = FACTS.iter().map(|fact| fact.id).collect();
        assert_eq!(ids.len(), FACTS.len(), "an id is used twice");
        for fact in FACTS {
            let words = [fact.summary, fact.source, fact.privilege, fact.minimum_kernel, fact.cost];
            assert!(words.iter().all(|word| !word.is_empty()), "{}", fact.id);
        }
    }

    #[test]
    fn together_they_fill_every_field() {
        let facts = read_all(&Host::live());
        let json = serde_json::to_string(&facts).unwrap();
        assert!(!json.contains("not read"), "{json}");
    }

    #[test]
    fn a_host_of_which_nothing_is_known_has_no_values() {
        let facts = serde_json::to_value(read_all(&Host::from_record(Record::default()))).unwrap();
        for (field, reading) in facts.as_object().unwrap() {
            assert!(reading.get("absent").is_some(), "{field}: {reading}");
        }
    }
}
