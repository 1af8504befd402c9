//! `/proc/cpuinfo`, which several facts share.

use crate::Host;
use std::collections::BTreeSet;
use untax_core::Reading::{self, Failed, Present};

/// What is used of `/proc/cpuinfo`; the names differ between architectures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CpuInfo {
    pub(super) vendor: Option<String>,
    pub(super) model: Option<String>,
    /// Number of logical CPUs that are described.
    pub(super) logical: u32,
    /// The pairs of `physical id` and `core id`.
    pub(super) cores: BTreeSet<(u32, u32)>,
    /// Number of logical CPUs that belong to one of `cores`.
    pub(super) placed: u32,
    /// The largest cache of a CPU in KiB.
    pub(super) cache_kib: Option<u64>,
    /// Those of [`KEPT_FLAGS`] that the first CPU has.
    pub(super) flags: BTreeSet<String>,
}

/// The lines that are used.
const KEPT: [&str; 10] = [
    "processor",
    "vendor_id",
    "model name",
    "physical id",
    "core id",
    "cache size",
    "flags",
    "CPU implementer",
    "CPU part",
    "cpu",
];

/// The flags that are used, of some two hundred that are repeated for each CPU.
const KEPT_FLAGS: [&str; 2] = ["pse", "pdpe1gb"];

/// Vendors of arm64 processors (Main ID Register, Implementer).
const IMPLEMENTERS: [(&str, &str); 8] = [
    ("0x41", "ARM"),
    ("0x43", "Cavium"),
    ("0x46", "Fujitsu"),
    ("0x48", "HiSilicon"),
    ("0x4e", "NVIDIA"),
    ("0x51", "Qualcomm"),
    ("0x61", "Apple"),
    ("0xc0", "Ampere"),
];

pub(super) fn read(host: &Host) -> Reading<CpuInfo> {
    host.filter_lines("/proc/cpuinfo", keep).and_then(|text| match parse(&text) {
        CpuInfo { logical: 0, .. } => Failed("/proc/cpuinfo describes no CPU".to_owned()),
        info => Present(info),
    })
}

fn keep(line: &str) -> Option<String> {
    let (key, value) = entry(line)?;
    match key {
        "flags" => {
            let flags = value.split_ascii_whitespace().filter(|flag| KEPT_FLAGS.contains(flag));
            Some(format!("flags: {}", flags.collect::<Vec<_>>().join(" ")))
        }
        _ => KEPT.contains(&key).then(|| line.to_owned()),
    }
}

fn entry(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').map(|(key, value)| (key.trim(), value.trim()))
}

fn parse(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut socket = None;
    for (key, value) in text.lines().filter_map(entry) {
        let first = |field: &mut Option<String>, value: String| {
            if !value.is_empty() {
                field.get_or_insert(value);
            }
        };
        match key {
            "processor" => {
                info.logical = info.logical.saturating_add(1);
                socket = None;
            }
            "vendor_id" => first(&mut info.vendor, value.to_owned()),
            "model name" | "cpu" => first(&mut info.model, value.to_owned()),
            "CPU implementer" => first(&mut info.vendor, implementer(value).to_owned()),
            "CPU part" => first(&mut info.model, format!("part {value}")),
            "physical id" => socket = value.parse::<u32>().ok(),
            "core id" => {
                if let (Some(socket), Ok(core)) = (socket, value.parse()) {
                    info.cores.insert((socket, core));
                    info.placed = info.placed.saturating_add(1);
                }
            }
            "cache size" => {
                let kib = value.strip_suffix("KB").and_then(|kib| kib.trim().parse().ok());
                info.cache_kib = info.cache_kib.or(kib);
            }
            "flags" if info.flags.is_empty() => {
                info.flags = value.split_ascii_whitespace().map(str::to_owned).collect();
            }
            _ => {}
        }
    }
    info
}

fn implementer(code: &str) -> &str {
    IMPLEMENTERS.iter().find(|(known, _)| *known == code).map_or(code, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n\
        model\t\t: 106\nmodel name\t: Intel(R) Xeon(R) Platinum 8352Y CPU @ 2.20GHz\n\
        cache size\t: 49152 KB\nphysical id\t: 1\ncore id\t\t: 3\ncpu cores\t: 2\n\
        flags\t\t: fpu vme pse tsc pdpe1gb pse36\nbugs\t\t: spectre_v1\n\n";

    fn kept(text: &str) -> String {
        text.lines().filter_map(keep).map(|line| line + "\n").collect()
    }

    #[test]
    fn hyperthreads_are_counted_as_one_core() {
        let text = format!(
            "{X86}{}{}",
            X86.replace("processor\t: 0", "processor\t: 1"),
            X86.replace("core id\t\t: 3", "core id\t\t: 4")
        );
        let info = parse(&kept(&text));
        assert_eq!(info.vendor.as_deref(), Some("GenuineIntel"));
        assert_eq!(info.model.unwrap(), "Intel(R) Xeon(R) Platinum 8352Y CPU @ 2.20GHz");
        assert_eq!((info.logical, info.placed), (3, 3));
        assert_eq!(info.cores, BTreeSet::from([(1, 3), (1, 4)]));
        assert_eq!(info.cache_kib, Some(49152));
        assert_eq!(info.flags, BTreeSet::from(["pse".to_owned(), "pdpe1gb".to_owned()]));
        assert!(!kept(&text).contains("spectre"));
    }

    #[test]
    fn arm64_names_its_implementer_and_part() {
        let info = parse(&kept(
            "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\
             CPU part\t: 0xd40\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n",
        ));
        assert_eq!(info.vendor.as_deref(), Some("ARM"));
        assert_eq!(info.model.as_deref(), Some("part 0xd40"));
        assert_eq!((info.logical, info.placed), (2, 0));
        assert_eq!(implementer("0x99"), "0x99");
    }

    #[test]
    fn a_core_without_its_socket_is_not_placed() {
        let info = parse("processor: 0\nphysical id: 0\nprocessor: 1\ncore id: 7\n");
        assert_eq!((info.logical, info.placed), (2, 0));
    }
}
