//! Processor model and topology.

use super::cpuinfo::{self, CpuInfo};
use super::{Fact, formats};
use crate::Host;
use std::collections::BTreeSet;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::host::{Cpu, HostFacts};

pub(super) const FACT: Fact = Fact {
    id: "cpu",
    summary: "vendor, model, CPUs, cores, sockets, last-level cache, hardware counters",
    source: "/proc/cpuinfo, /sys/devices/system/cpu, /sys/bus/event_source/devices",
    privilege: "none",
    minimum_kernel: "2.6.32",
    cost: "one file that grows with the CPUs, and a dozen small ones of one CPU",
    read,
};

const CPUS: &str = "/sys/devices/system/cpu";
const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";

fn read(host: &Host, facts: &mut HostFacts) {
    facts.cpu = cpuinfo::read(host).map(|info| cpu(host, info));
}

fn cpu(host: &Host, info: CpuInfo) -> Cpu {
    let online = host.text(&format!("{CPUS}/online"));
    let logical =
        online.value().and_then(|list| formats::list_length(list)).unwrap_or(info.logical);
    let first = online.value().and_then(|list| formats::list_first(list)).unwrap_or(0);
    let unknown = || "unknown".to_owned();
    Cpu {
        cores: cores(&info).or_else(|| parts(host, first, logical, "core_cpus_list")),
        sockets: sockets(&info).or_else(|| parts(host, first, logical, "package_cpus_list")),
        last_level_cache_bytes: last_level_cache(host, first)
            .or_else(|| last_level_cache_of(&info)),
        logical,
        vendor: info.vendor.unwrap_or_else(unknown),
        model: info.model.unwrap_or_else(unknown),
        pmu: pmu(host),
    }
}

/// Cores are known when every CPU says where it is.
fn cores(info: &CpuInfo) -> Reading<u32> {
    placed(info, info.cores.len())
}

fn sockets(info: &CpuInfo) -> Reading<u32> {
    let sockets: BTreeSet<u32> = info.cores.iter().map(|(socket, _)| *socket).collect();
    placed(info, sockets.len())
}

fn placed(info: &CpuInfo, count: usize) -> Reading<u32> {
    match u32::try_from(count) {
        Ok(count) if count > 0 && info.placed == info.logical => Present(count),
        _ => Absent("/proc/cpuinfo does not say where each CPU is".to_owned()),
    }
}

/// How many parts like the one that `cpu` belongs to make up all CPUs: one file instead of one
/// per CPU, right where all parts are alike.
fn parts(host: &Host, cpu: u32, logical: u32, file: &str) -> Reading<u32> {
    let path = format!("{CPUS}/cpu{cpu}/topology/{file}");
    let width = host.text(&path).parse(&path, |list| formats::list_length(list));
    width.and_then(|width| match logical.checked_rem(width) {
        Some(0) => Present(logical / width),
        _ => Absent(format!("{path}: the parts are not alike")),
    })
}

fn last_level_cache(host: &Host, cpu: u32) -> Reading<Bytes> {
    let directory = format!("{CPUS}/cpu{cpu}/cache");
    host.names(&directory).and_then(|names| {
        let caches = names.iter().filter(|name| name.starts_with("index")).filter_map(|name| {
            let level: u32 =
                formats::number(host, &format!("{directory}/{name}/level")).into_value()?;
            Some((level, format!("{directory}/{name}/size")))
        });
        match caches.max() {
            Some((_, size)) => host.text(&size).parse(&size, |text| cache_size(text)),
            None => Absent(format!("{directory} lists no cache")),
        }
    })
}

fn last_level_cache_of(info: &CpuInfo) -> Reading<Bytes> {
    match info.cache_kib {
        Some(kib) if kib > 0 => Present(Bytes::from_kib(kib)),
        _ => Absent("/proc/cpuinfo has no cache size".to_owned()),
    }
}

/// Parses `49152K`, the only form the kernel writes.
fn cache_size(text: &str) -> Option<Bytes> {
    let kib = text.trim().strip_suffix('K')?.parse().ok()?;
    (kib > 0).then(|| Bytes::from_kib(kib))
}

/// Counters of the processor are an event source of their own: `cpu` on x86, `cpu_core` and
/// `cpu_atom` on hybrid ones, `armv8_pmuv3_0` and the like on arm64.
fn pmu(host: &Host) -> Reading<String> {
    let is_pmu = |name: &&String| {
        *name == "cpu"
            || name.starts_with("cpu_")
            || name.contains("_pmuv3")
            || name.starts_with("armv8")
    };
    host.names(EVENT_SOURCES).and_then(|names| {
        let found: Vec<&str> = names.iter().filter(is_pmu).map(String::as_str).collect();
        match found.as_slice() {
            [] => Absent(format!(
                "no hardware counters here, as in most virtual machines: \
                 {EVENT_SOURCES} lists none of a CPU"
            )),
            found => Present(describe(host, found)),
        }
    })
}

/// The event sources, with the name of the first where the kernel knows one (Intel).
fn describe(host: &Host, sources: &[&str]) -> String {
    let listed = sources.join(", ");
    let first = sources.first().copied().unwrap_or_default();
    match formats::line(host, &format!("{EVENT_SOURCES}/{first}/caps/pmu_name")) {
        Present(name) => format!("{listed} ({name})"),
        Absent(_) | Reading::Denied(_) | Failed(_) => listed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn read_from(record: Record) -> Cpu {
        super::super::read_all(&Host::from_record(record)).cpu.into_value().unwrap()
    }

    fn x86(cpus: &[(u32, u32)]) -> Record {
        let one = |(n, (socket, core)): (usize, &(u32, u32))| {
            format!(
                "processor: {n}\nvendor_id: AuthenticAMD\nmodel name: AMD EPYC 7713\n\
                 cache size: 512 KB\nphysical id: {socket}\ncore id: {core}\n\n"
            )
        };
        let text = cpus.iter().enumerate().map(one).collect::<Vec<_>>().concat();
        Record::default().with_file("/proc/cpuinfo", &text)
    }

    #[test]
    fn x86_says_where_each_cpu_is() {
        let record = x86(&[(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 1), (1, 0), (1, 1)])
            .with_file("/sys/devices/system/cpu/online", "0-7\n")
            .with_file("/sys/devices/system/cpu/cpu0/cache/index0/level", "1\n")
            .with_file("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n")
            .with_file("/sys/devices/system/cpu/cpu0/cache/index3/level", "3\n")
            .with_file("/sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n")
            .with_file("/sys/bus/event_source/devices/cpu/caps/pmu_name", "icelake\n")
            .with_file("/sys/bus/event_source/devices/software/type", "1\n");
        let cpu = read_from(record);
        assert_eq!((cpu.vendor.as_str(), cpu.logical), ("AuthenticAMD", 8));
        assert_eq!((cpu.cores, cpu.sockets), (Present(4), Present(2)));
        assert_eq!(cpu.last_level_cache_bytes, Present(Bytes::from_mib(32)));
        assert_eq!(cpu.pmu, Present("cpu (icelake)".to_owned()));
    }

    #[test]
    fn arm64_divides_by_the_width_of_one_part() {
        let record = Record::default()
            .with_file("/proc/cpuinfo", "processor: 2\nCPU implementer: 0x41\nCPU part: 0xd0c\n")
            .with_file("/sys/devices/system/cpu/online", "2-65\n")
            .with_file("/sys/devices/system/cpu/cpu2/topology/core_cpus_list", "2\n")
            .with_file("/sys/devices/system/cpu/cpu2/topology/package_cpus_list", "2-65\n")
            .with_file("/sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n");
        let cpu = read_from(record);
        assert_eq!((cpu.cores, cpu.sockets), (Present(64), Present(1)));
        assert_eq!(cpu.pmu, Present("armv8_pmuv3_0".to_owned()));
        assert!(matches!(cpu.last_level_cache_bytes, Absent(_)));
    }

    #[test]
    fn a_virtual_machine_may_hide_nearly_all() {
        let record = Record::default()
            .with_file("/proc/cpuinfo", "processor: 0\n\nprocessor: 1\n")
            .with_file("/sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0-2\n")
            .with_file("/sys/bus/event_source/devices/software/type", "1\n");
        let cpu = read_from(record);
        assert_eq!((cpu.vendor.as_str(), cpu.logical), ("unknown", 2));
        assert!(matches!(cpu.cores, Absent(_)), "two CPUs are no whole number of three");
        assert!(matches!(cpu.sockets, Absent(_)));
        assert!(matches!(cpu.pmu, Absent(why) if why.contains("no hardware counters")));
    }

    #[test]
    fn the_cache_in_cpuinfo_is_second_best() {
        assert_eq!(read_from(x86(&[(0, 0)])).last_level_cache_bytes, Present(Bytes(512 << 10)));
    }
}
