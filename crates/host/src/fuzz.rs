//! Every parser of this crate behind one function, for the fuzz target and the property tests.

use crate::{Host, Record, cgroup, command_line, digest, facts, process};
use serde_json::{Value, json};
use std::hint::black_box;
use untax_core::Reading::{self, Present};

/// The files that are parsed.
const FILES: &[&str] = &[
    "/proc/sys/kernel/osrelease",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/self/mountinfo",
    "/proc/version",
    "/proc/vmstat",
    "/proc/sys/net/netfilter/nf_conntrack_max",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/self/net/stat/nf_conntrack",
    "/proc/7/net/stat/nf_conntrack",
    "/proc/7/root/etc/machine-id",
    "/etc/machine-id",
    "/sys/class/net/a/uevent",
    "/sys/class/net/a/type",
    "/sys/class/net/a/iflink",
    "/sys/class/net/a/flags",
    "/sys/class/net/a/statistics/rx_packets",
    "/sys/class/net/a/statistics/tx_packets",
    "/sys/fs/cgroup/a/memory.events.local",
    "/sys/fs/cgroup/a/memory.current",
    "/sys/fs/cgroup/a/memory.stat",
    "/sys/fs/cgroup/a/memory.pressure",
    "/sys/fs/cgroup/memory/a/memory.failcnt",
    "/sys/fs/cgroup/memory/a/memory.stat",
    "/proc/device-tree/hypervisor/compatible",
    "/proc/7/stat",
    "/proc/7/status",
    "/proc/7/maps",
    "/proc/7/schedstat",
    "/proc/7/task/7/schedstat",
    "/proc/7/task/9/schedstat",
    "/proc/7/cgroup",
    "/proc/7/cmdline",
    "/etc/os-release",
    "/usr/lib/os-release",
    "/etc/default/grub",
    "/run/systemd/container",
    "/run/runc/one/state.json",
    "/sys/hypervisor/type",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/bus/event_source/devices/cpu/caps/pmu_name",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpuidle/current_driver",
    "/sys/devices/system/cpu/cpuidle/current_governor_ro",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/name",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/usage",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/time",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/disable",
    "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
    "/sys/devices/system/cpu/cpufreq/policy0/affected_cpus",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
    "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq",
    "/sys/devices/system/cpu/cpufreq/policy0/stats/time_in_state",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
    "/sys/module/haltpoll/parameters/guest_halt_poll_grow_start",
    "/sys/module/haltpoll/parameters/guest_halt_poll_allow_shrink",
    "/sys/devices/system/cpu/cpu0/cache/index0/level",
    "/sys/devices/system/cpu/cpu0/cache/index0/size",
    "/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "/sys/devices/system/cpu/cpu0/topology/package_cpus_list",
    "/sys/devices/system/node/node1/cpulist",
    "/sys/devices/system/node/node1/distance",
    "/sys/devices/system/node/node1/meminfo",
    "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan",
    "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
    "/sys/fs/cgroup/a/hugetlb.2MB.current",
    "/sys/fs/cgroup/a/hugetlb.2MB.max",
    "/sys/fs/cgroup/a/hugetlb.2MB.rsvd.max",
    "/sys/fs/cgroup/a/memory.max",
    "/sys/fs/cgroup/hugetlb/a/hugetlb.2MB.limit_in_bytes",
    "/sys/fs/cgroup/hugetlb/a/hugetlb.2MB.rsvd.limit_in_bytes",
    "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
    "/sys/fs/cgroup/a/cpu.pressure",
    "/sys/fs/cgroup/a/io.pressure",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
];

/// Directories whose entries have a size in their name.
const NAMED: &[&str] = &[
    "/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages",
    "/sys/devices/system/node/node{}/meminfo",
    "/sys/fs/cgroup/a/hugetlb.{}.max",
    "/sys/devices/system/cpu/cpu0/cache/{}/level",
    "/sys/bus/event_source/devices/{}/type",
];

/// What separates the contents of two files.
const SEPARATOR: char = '\u{1}';

/// Fills every file with a piece of `bytes` and reads all that can be made of them. Pieces are
/// separated by byte 1; where there are fewer pieces than files they are used again.
pub fn fuzz_parsers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let pieces: Vec<&str> = text.split(SEPARATOR).collect();
    let piece = |n: usize| pieces.get(n % pieces.len()).copied().unwrap_or_default();
    let host = FILES
        .iter()
        .enumerate()
        .fold(Record::default(), |record, (n, path)| record.with_file(path, piece(n)));
    let host = NAMED.iter().enumerate().fold(host, |record, (n, path)| {
        record.with_file(&path.replace("{}", piece(n)), piece(n + 1))
    });
    let host = host
        .with_link("/proc/self/ns/mnt", "mnt:[1]")
        .with_link("/proc/7/ns/mnt", "mnt:[2]")
        .with_link("/proc/self/ns/pid", piece(2))
        .with_answer("machine_architecture", &Present("x86_64"))
        .with_answer("base_page_bytes", &Present(4096))
        .with_answer("clock_ticks_per_second", &Present(100))
        .with_answer("cpuid", &Present(leaves(bytes)));
    black_box(read_everything(&Host::from_record(host), 7));
    black_box(command_line::redact(&text));
}

/// CPUID leaves with registers from `bytes`, of a vendor that the first byte picks.
fn leaves(bytes: &[u8]) -> Vec<Value> {
    const NUMBERS: [u32; 9] =
        [1, 2, 0x18, 0x18, 0x4000_0000, 0x4000_0100, 0x8000_0005, 0x8000_0006, 0x8000_0019];
    let leaf = |number: u32, subleaf: usize, registers: [u32; 4]| {
        let [eax, ebx, ecx, edx] = registers;
        json!({ "number": number, "subleaf": subleaf, "eax": eax, "ebx": ebx, "ecx": ecx, "edx": edx })
    };
    let vendor = match bytes.first() {
        Some(first) if first % 2 == 0 => [1, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
        _ => [1, 0x6874_7541, 0x444d_4163, 0x6974_6e65],
    };
    let register = |n: usize| {
        let four = [0, 1, 2, 3].map(|byte| bytes.get(n * 4 + byte).copied().unwrap_or_default());
        u32::from_le_bytes(four)
    };
    let rest = NUMBERS.iter().enumerate().map(|(n, number)| {
        let subleaf = usize::from(n == 3);
        leaf(*number, subleaf, [0, 1, 2, 3].map(|part| register(n * 4 + part)))
    });
    std::iter::once(leaf(0, 0, vendor)).chain(rest).collect()
}

/// What can be read of a host, as JSON: the facts, which processes there are, and of one process
/// its groups, container, pod and numbers.
pub fn read_everything(host: &Host, pid: u32) -> Value {
    let facts = facts::read_all(host);
    let pids = process::all(host).map(|all| all.iter().map(|stat| stat.pid).collect::<Vec<_>>());
    let layout = facts.cgroup.as_ref();
    let cgroup = layout.clone().and_then(|layout| cgroup::of_process(host, layout, pid));
    let groups = layout.and_then(|layout| cgroup::memory_of_all(host, layout, 4096));
    let container = cgroup.value().and_then(|cgroup| cgroup::container_of(host, pid, cgroup));
    let pod = cgroup.value().and_then(cgroup::pod_of);
    let times = [1, 2].map(|threads| {
        process::sched_time(host, pid, threads).map(|time| (time.on_cpu_s, time.runnable_s))
    });
    let maps = process::maps(host, pid)
        .map(|maps| maps.iter().map(|mapping| mapping.bytes.0).collect::<Vec<_>>());
    json!({
        "facts": facts,
        "pids": pids,
        "cgroup": cgroup,
        "groups": groups,
        "conntrack": process::conntrack(host, pid),
        "machine_id": digest::machine_id_of(host, pid),
        "container": container,
        "pod": pod,
        "times": times,
        "maps": maps,
        "status": status(host, pid),
        "arguments": command_line::arguments(host, pid),
    })
}

fn status(host: &Host, pid: u32) -> Reading<Vec<Option<u64>>> {
    process::status(host, pid).map(|status| {
        let bytes = [status.resident, status.page_tables, status.hugetlb];
        let counts = [status.uid, status.threads]
            .into_iter()
            .chain(status.namespace_pids.iter().map(|pid| Some(*pid)));
        let bytes = bytes.into_iter().map(|bytes| bytes.map(|bytes| bytes.0));
        counts.map(|count| count.map(u64::from)).chain(bytes).collect()
    })
}
