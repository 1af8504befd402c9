//! Facts of the machine, as types. `untax_host::facts` reads them.

mod thp;

pub use thp::{INHERIT, Thp, ThpSetter, ThpSize};

use crate::idle::{CpuFreq, CpuIdle, HaltPoll, PowerLimits};
use crate::network::{ClusterNetwork, ConntrackLimit, Links};
use crate::pressure::{Stalls, VmCounts};
use crate::{Bytes, Reading, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Everything known of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostFacts {
    /// The running kernel.
    pub kernel: Reading<Kernel>,
    /// Processor model and topology.
    pub cpu: Reading<Cpu>,
    /// Translation look-aside buffers, data side and unified.
    pub tlb: Reading<Vec<Tlb>>,
    /// The size of a base page.
    pub base_page_bytes: Reading<Bytes>,
    /// Page sizes that the processor and kernel can map, ascending.
    pub page_sizes_bytes: Reading<Vec<Bytes>>,
    /// Pools of pre-allocated huge pages.
    pub hugepages: Reading<Vec<Pool>>,
    /// Transparent huge pages.
    pub thp: Reading<Thp>,
    /// What sets them again at every boot: absent where nothing does that is known. Not known of older
    /// captures.
    #[serde(default = "Reading::<ThpSetter>::not_captured")]
    pub thp_set_by: Reading<ThpSetter>,
    /// NUMA nodes.
    pub numa: Reading<Vec<NumaNode>>,
    /// Memory of the whole machine.
    pub memory: Reading<Memory>,
    /// The distribution and how it boots.
    pub distribution: Reading<Distribution>,
    /// The hypervisor or container that the host itself is, such as `kvm` or `docker on kvm`;
    /// `none` on bare metal.
    pub virtualization: Reading<String>,
    /// Which control groups there are: `v1`, `v2` or `hybrid`.
    pub cgroup_version: Reading<String>,
    /// Where they are.
    pub cgroup: Reading<CgroupLayout>,
    /// Processor time of the machine since boot.
    pub cpu_time: Reading<CpuTime>,
    /// The same of each CPU that is online, by its number. Not known of older captures.
    #[serde(default = "Reading::<Vec<(u32, CpuTime)>>::not_captured")]
    pub each_cpu_time: Reading<Vec<(u32, CpuTime)>>,
    /// Settings of the kernel that remedies change, by their names, such as `vm.dirty_ratio`.
    pub sysctls: Reading<BTreeMap<String, String>>,
    /// Reclaim and NUMA balancing since boot.
    pub vm_counts: Reading<VmCounts>,
    /// Tasks held up since boot. Not known of older captures.
    #[serde(default = "Reading::<Stalls>::not_captured")]
    pub pressure: Reading<Stalls>,
    /// Virtual links.
    pub links: Reading<Links>,
    /// The network of the cluster that this is a node of. Not known of older captures.
    #[serde(default = "Reading::<ClusterNetwork>::not_captured")]
    pub cluster_network: Reading<ClusterNetwork>,
    /// The table of connections.
    pub conntrack: Reading<ConntrackLimit>,
    /// The machine's name; left out where it is not known, as in captures and in runs of older versions.
    #[serde(default = "Reading::<String>::not_captured", skip_serializing_if = "is_gap")]
    pub hostname: Reading<String>,
    /// A digest of `/etc/machine-id`; the id itself is confidential.
    pub machine_id: Reading<String>,
    /// A digest of the machine's id in its firmware.
    pub product_uuid: Reading<String>,
    /// The sandbox that this program itself is in: `gvisor`, `kata` or `none`.
    pub sandbox: Reading<String>,
    /// How idle CPUs are put to sleep. Not known of older captures, as are the next three.
    #[serde(default = "Reading::<CpuIdle>::not_captured")]
    pub cpuidle: Reading<CpuIdle>,
    /// For how long this guest looks for work before it halts a CPU.
    #[serde(default = "Reading::<HaltPoll>::not_captured")]
    pub haltpoll: Reading<HaltPoll>,
    /// How the frequency of CPUs is chosen.
    #[serde(default = "Reading::<CpuFreq>::not_captured")]
    pub cpufreq: Reading<CpuFreq>,
    /// What forbids CPUs to sleep deeply.
    #[serde(default = "Reading::<PowerLimits>::not_captured")]
    pub power_limits: Reading<PowerLimits>,
}

fn is_gap<T>(reading: &Reading<T>) -> bool {
    !reading.is_present()
}

impl HostFacts {
    /// A host of which nothing is known, for this reason. Readers fill it; tests set the facts that
    /// they are about.
    pub fn unknown(why: &str) -> Self {
        Self {
            kernel: Reading::absent(why),
            cpu: Reading::absent(why),
            tlb: Reading::absent(why),
            base_page_bytes: Reading::absent(why),
            page_sizes_bytes: Reading::absent(why),
            hugepages: Reading::absent(why),
            thp: Reading::absent(why),
            thp_set_by: Reading::absent(why),
            numa: Reading::absent(why),
            memory: Reading::absent(why),
            distribution: Reading::absent(why),
            virtualization: Reading::absent(why),
            cgroup_version: Reading::absent(why),
            cgroup: Reading::absent(why),
            cpu_time: Reading::absent(why),
            each_cpu_time: Reading::absent(why),
            sysctls: Reading::absent(why),
            vm_counts: Reading::absent(why),
            pressure: Reading::absent(why),
            links: Reading::absent(why),
            cluster_network: Reading::absent(why),
            conntrack: Reading::absent(why),
            hostname: Reading::absent(why),
            machine_id: Reading::absent(why),
            product_uuid: Reading::absent(why),
            sandbox: Reading::absent(why),
            cpuidle: Reading::absent(why),
            haltpoll: Reading::absent(why),
            cpufreq: Reading::absent(why),
            power_limits: Reading::absent(why),
        }
    }
}

/// The running kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Kernel {
    /// Release, such as `6.1.0-18-amd64`.
    pub release: String,
    /// Machine architecture, such as `x86_64`.
    pub arch: String,
    /// Parameters on the boot command line that concern memory, CPUs or isolation; others may
    /// carry secrets and are left out.
    pub parameters: Reading<Vec<String>>,
}

/// Processor model and topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cpu {
    /// `GenuineIntel`, `AuthenticAMD`, …
    pub vendor: String,
    /// Model name as the processor gives it.
    pub model: String,
    /// Logical CPUs online.
    pub logical: u32,
    /// Physical cores, when the topology is exposed.
    pub cores: Reading<u32>,
    /// Sockets, when the topology is exposed.
    pub sockets: Reading<u32>,
    /// Size of the last-level cache of one CPU.
    pub last_level_cache_bytes: Reading<Bytes>,
    /// Whether hardware performance counters can be used here.
    pub pmu: Reading<String>,
}

impl Cpu {
    /// A processor of which only the number of logical CPUs is known.
    pub fn unknown(logical: u32, why: &str) -> Self {
        Self {
            vendor: "unknown".to_owned(),
            model: "unknown".to_owned(),
            logical,
            cores: Reading::absent(why),
            sockets: Reading::absent(why),
            last_level_cache_bytes: Reading::absent(why),
            pmu: Reading::absent(why),
        }
    }
}

/// One translation look-aside buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tlb {
    /// 1 or 2.
    pub level: u8,
    /// `data` (loads, or loads and stores), `store`, `instruction` or `unified`.
    pub kind: String,
    /// The page sizes that share these entries.
    pub page_sizes_bytes: Vec<Bytes>,
    /// Number of entries.
    pub entries: u32,
    /// Associativity, the number of entries when full; `None` when the processor does not say.
    pub ways: Option<u32>,
}

/// How much memory the data side of the TLB covers with pages of one size: the entries of the
/// last level that holds such pages for loads. `None` when no level does.
pub fn tlb_reach(tlb: &[Tlb], page: Bytes) -> Option<Bytes> {
    let holds = |t: &&Tlb| {
        matches!(t.kind.as_str(), "data" | "unified") && t.page_sizes_bytes.contains(&page)
    };
    let level = tlb.iter().filter(holds).map(|t| t.level).max()?;
    let last = tlb.iter().filter(holds).filter(|t| t.level == level);
    let entries: u64 = last.map(|t| u64::from(t.entries)).sum();
    Some(Bytes(entries.saturating_mul(page.0)))
}

/// Huge pages of one size, on the whole host or on one NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pool {
    /// The size of one page.
    pub size_bytes: Bytes,
    /// The NUMA node; `None` for the sum over the host.
    pub node: Option<u32>,
    /// Pages in the pool, surplus ones included.
    pub total: Reading<u64>,
    /// Pages that nobody has faulted in.
    pub free: Reading<u64>,
    /// Free pages that a mapping was promised; the kernel counts them for the host only.
    pub reserved: Reading<u64>,
    /// Pages beyond the configured number, given back when they become free.
    pub surplus: Reading<u64>,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs as the kernel lists them, such as `0-15,32-47`.
    pub cpus: Reading<String>,
    /// All of its memory.
    pub total_bytes: Reading<Bytes>,
    /// What is free of it.
    pub free_bytes: Reading<Bytes>,
    /// Distance to each node, itself included, in the order of their numbers.
    pub distances: Reading<Vec<u32>>,
}

impl NumaNode {
    /// Whether a CPU is one of its.
    pub fn has_cpu(&self, cpu: u32) -> bool {
        self.cpus.value().is_some_and(|list| ranges(list).any(|range| range.contains(&cpu)))
    }

    /// Whether all CPUs of a list, such as `0-15,32-47`, are its.
    pub fn has_all_of(&self, list: &str) -> bool {
        let own: Vec<RangeInclusive<u32>> =
            self.cpus.value().map(|cpus| ranges(cpus).collect()).unwrap_or_default();
        let within = |range: &RangeInclusive<u32>| {
            own.iter().any(|of| of.contains(range.start()) && of.contains(range.end()))
        };
        let wanted: Vec<RangeInclusive<u32>> = ranges(list).collect();
        !wanted.is_empty() && wanted.iter().all(within)
    }
}

/// The CPUs of a list, such as `0-15,32-47`.
pub fn cpus(list: &str) -> impl Iterator<Item = u32> {
    ranges(list).flatten()
}

/// The ranges of a list; what is none of them is left out.
fn ranges(list: &str) -> impl Iterator<Item = RangeInclusive<u32>> {
    list.trim().split(',').filter_map(|range| {
        let (first, end) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=end.parse().ok()?)
    })
}

/// Memory of the machine, from `/proc/meminfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Memory {
    /// Usable memory.
    pub total_bytes: Bytes,
    /// An estimate of what can be allocated without swapping.
    pub available_bytes: Reading<Bytes>,
    /// Unused memory.
    pub free_bytes: Reading<Bytes>,
    /// Page tables of all processes.
    pub page_table_bytes: Reading<Bytes>,
    /// Anonymous memory in transparent huge pages.
    pub anon_huge_bytes: Reading<Bytes>,
    /// Shared memory in transparent huge pages.
    pub shmem_huge_bytes: Reading<Bytes>,
    /// All pools of huge pages together.
    pub hugetlb_bytes: Reading<Bytes>,
    /// The huge page that is meant where none is named. Not known of older captures.
    #[serde(default = "Reading::<Bytes>::not_captured")]
    pub default_huge_page_bytes: Reading<Bytes>,
    /// Swap space.
    pub swap_total_bytes: Reading<Bytes>,
}

impl Memory {
    /// Memory of which only its size is known.
    pub fn unknown(total_bytes: Bytes, why: &str) -> Self {
        Self {
            total_bytes,
            available_bytes: Reading::absent(why),
            free_bytes: Reading::absent(why),
            page_table_bytes: Reading::absent(why),
            anon_huge_bytes: Reading::absent(why),
            shmem_huge_bytes: Reading::absent(why),
            hugetlb_bytes: Reading::absent(why),
            default_huge_page_bytes: Reading::absent(why),
            swap_total_bytes: Reading::absent(why),
        }
    }
}

/// The distribution and how it boots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Distribution {
    /// `ID` of os-release, such as `debian`.
    pub id: String,
    /// `VERSION_ID`, such as `12`; rolling distributions have none.
    pub version: Option<String>,
    /// `PRETTY_NAME`.
    pub name: String,
    /// What sets the kernel's command line: `grub`, `grub-bls`, `systemd-boot`, `bottlerocket`,
    /// `transactional`.
    pub boot_loader: Reading<String>,
}

/// Where control groups are, and what they count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CgroupLayout {
    /// Where each v1 controller, and `unified` for v2, is mounted.
    pub mounts: Vec<CgroupMount>,
    /// Whether huge pages count in `memory.max` (mount option `memory_hugetlb_accounting`).
    pub memory_hugetlb_accounting: bool,
}

/// One mounted cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CgroupMount {
    /// v1 controllers of the hierarchy, or `unified`.
    pub controllers: Vec<String>,
    /// The mount point.
    pub path: String,
    /// The group that is seen at the mount point; not `/` in a container that sees a part only.
    pub root: String,
}

/// Processor time of the whole machine, or of one CPU, since boot, from `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuTime {
    /// Time on CPU of any kind.
    pub busy_s: Seconds,
    /// What of it was in interrupts, their soft part included; older runs do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_s: Option<Seconds>,
    /// Time with nothing to run, waiting for disks included.
    pub idle_s: Seconds,
    /// Time the hypervisor ran something else.
    pub steal_s: Seconds,
}

impl CpuTime {
    /// How many times as much time on a CPU as the kernel counts of threads their trace may hold: its
    /// clock goes on while a hypervisor has the CPU, and, where kernels count interrupts apart, during
    /// these. 1 where nothing ran.
    pub fn stretch_since(self, earlier: Self) -> f64 {
        let grown = |of: fn(&Self) -> Seconds| (of(&self) - of(&earlier)).0.max(0.0);
        let [busy_s, steal_s] = [grown(|time| time.busy_s), grown(|time| time.steal_s)];
        let stretch =
            (busy_s + steal_s) / (busy_s - grown(|time| time.interrupts_s.unwrap_or_default()));
        if stretch.is_finite() { stretch.max(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlb(level: u8, kind: &str, pages: &[Bytes], entries: u32) -> Tlb {
        Tlb { level, kind: kind.into(), page_sizes_bytes: pages.into(), entries, ways: None }
    }

    #[test]
    fn a_trace_may_hold_what_others_had_meanwhile() {
        let time = |busy: f64, interrupts: f64, steal: f64| CpuTime {
            busy_s: Seconds(busy),
            interrupts_s: Some(Seconds(interrupts)),
            idle_s: Seconds(0.0),
            steal_s: Seconds(steal),
        };
        let stretch = |end: CpuTime| end.stretch_since(time(1.0, 1.0, 1.0));
        assert!((stretch(time(9.0, 1.0, 1.0)) - 1.0).abs() < 1e-9);
        assert!((stretch(time(9.0, 1.0, 9.0)) - 2.0).abs() < 1e-9);
        assert!((stretch(time(9.0, 5.0, 1.0)) - 2.0).abs() < 1e-9);
        assert!((stretch(time(1.0, 1.0, 1.0)) - 1.0).abs() < 1e-9, "nothing ran");
    }

    #[test]
    fn cpus_of_a_node() {
        let node = NumaNode {
            node: 1,
            cpus: Reading::Present("16-31,48-63".to_owned()),
            total_bytes: Reading::Absent(String::new()),
            free_bytes: Reading::Absent(String::new()),
            distances: Reading::Absent(String::new()),
        };
        assert!(node.has_cpu(16) && node.has_cpu(63) && !node.has_cpu(32));
        assert!(node.has_all_of("17,20-31,50") && !node.has_all_of("17-48"));
        assert!(!node.has_all_of("") && !node.has_all_of("x"), "garbage is nowhere");
    }

    #[test]
    fn reach_adds_up_the_last_level_that_holds_the_page() {
        let ice_lake = [
            tlb(1, "data", &[Bytes::KIB_4], 64),
            tlb(1, "store", &[Bytes::KIB_4, Bytes::MIB_2], 16),
            tlb(1, "data", &[Bytes::GIB_1], 8),
            tlb(1, "instruction", &[Bytes::MIB_2], 16),
            tlb(2, "unified", &[Bytes::KIB_4, Bytes::MIB_2], 1024),
            tlb(2, "unified", &[Bytes::KIB_4], 1024),
        ];
        assert_eq!(tlb_reach(&ice_lake, Bytes::KIB_4), Some(Bytes(8 << 20)));
        assert_eq!(tlb_reach(&ice_lake, Bytes::MIB_2), Some(Bytes(2 << 30)));
        assert_eq!(tlb_reach(&ice_lake, Bytes::GIB_1), Some(Bytes(8 << 30)));
        assert_eq!(tlb_reach(&ice_lake[3..4], Bytes::MIB_2), None);
    }
}
