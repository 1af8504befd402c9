//! Reclaim and NUMA balancing of the whole machine since boot.

use super::Fact;
use crate::Host;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::host::HostFacts;
use untax_core::pressure::VmCounts;

pub(super) const FACT: Fact = Fact {
    id: "vm_counts",
    summary: "allocations that had to reclaim memory, and what NUMA balancing did",
    source: "/proc/vmstat",
    privilege: "none",
    minimum_kernel: "2.6; NUMA balancing since 3.8",
    cost: "one file; the kernel sums the counters of all CPUs for it",
    read,
};

/// One counter for each zone since 4.10, one for all before.
const STALLS: &str = "allocstall";

fn read(host: &Host, facts: &mut HostFacts) {
    let keep = |line: &str| {
        (line.starts_with(STALLS) || line.starts_with("numa_")).then(|| line.to_owned())
    };
    facts.vm_counts = host.filter_lines("/proc/vmstat", keep).map(|text| VmCounts {
        allocation_stalls: sum(&text, |name| name.starts_with(STALLS)),
        numa_hint_faults: sum(&text, |name| name == "numa_hint_faults"),
        numa_hint_faults_local: sum(&text, |name| name == "numa_hint_faults_local"),
        numa_pages_migrated: sum(&text, |name| name == "numa_pages_migrated"),
    });
}

/// The sum of the counters whose names fit; one that is no number makes it unknown.
fn sum(text: &str, fits: impl Fn(&str) -> bool) -> Reading<u64> {
    let fields = text.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    let mut sum: Reading<u64> = Absent("this kernel does not count it".to_owned());
    for (name, number) in fields.filter(|(name, _)| fits(name)) {
        let Ok(number) = number.trim().parse::<u64>() else {
            return Failed(format!("{name} in /proc/vmstat has an unexpected form"));
        };
        sum = Present(sum.value().unwrap_or(&0).saturating_add(number));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn counts(text: &str) -> VmCounts {
        let host = Host::from_record(Record::default().with_file("/proc/vmstat", text));
        super::super::read_all(&host).vm_counts.into_value().unwrap()
    }

    #[test]
    fn zones_are_added_up_and_names_are_whole() {
        let counts = counts(
            "allocstall_dma 1\nallocstall_normal 30\nallocstall_movable 500\n\
             numa_hint_faults 7\nnuma_hint_faults_local 5\nnuma_pages_migrated 3\n",
        );
        assert_eq!(counts.allocation_stalls, Present(531));
        assert_eq!(counts.numa_hint_faults, Present(7));
        assert_eq!(counts.numa_hint_faults_local, Present(5));
        assert_eq!(counts.numa_pages_migrated, Present(3));
    }

    #[test]
    fn what_is_not_counted_is_not_zero() {
        let counts = counts("allocstall 3\nnuma_hint_faults x\nnr_free_pages 1\n");
        assert_eq!(counts.allocation_stalls, Present(3), "as before 4.10");
        assert!(matches!(counts.numa_hint_faults, Failed(_)));
        assert!(matches!(counts.numa_pages_migrated, Absent(_)));
    }
}
