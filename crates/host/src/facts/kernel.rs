//! The running kernel and what it was told at boot.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading::Present;
use untax_core::host::{HostFacts, Kernel};

pub(super) const FACT: Fact = Fact {
    id: "kernel",
    summary: "release, architecture, and the boot parameters that concern memory and CPUs",
    source: "/proc/sys/kernel/osrelease, /proc/cmdline, uname(2)",
    privilege: "none",
    minimum_kernel: "any",
    cost: "two small files",
    read,
};

/// Parameters that are kept. All others may carry secrets.
const KEPT: [&str; 12] = [
    "default_hugepagesz",
    "idle",
    "iommu",
    "isolcpus",
    "mem",
    "memmap",
    "mitigations",
    "nohz_full",
    "psi",
    "pti",
    "systemd.unified_cgroup_hierarchy",
    "systemd.unit",
];

/// Parameters of which all that start so are kept.
const KEPT_PREFIXES: [&str; 11] = [
    "hugepages",
    "transparent_hugepage",
    "numa",
    "cgroup",
    "haltpoll.",
    "cpuidle",
    "cpufreq.",
    "intel_idle.",
    "intel_pstate",
    "amd_pstate",
    "processor.",
];

fn read(host: &Host, facts: &mut HostFacts) {
    let parameters = host
        .filter_lines("/proc/cmdline", |line| Some(parse(line).join(" ")))
        .map(|text| parse(&text));
    let arch = host.observe("machine_architecture", || {
        Present(rustix::system::uname().machine().to_string_lossy().into_owned())
    });
    facts.kernel = formats::line(host, "/proc/sys/kernel/osrelease")
        .and_then(|release| arch.map(|arch| Kernel { release, arch, parameters }));
}

/// The kept parameters of a command line. What follows `--` is for init, not for the kernel.
fn parse(line: &str) -> Vec<String> {
    parameters(line)
        .take_while(|parameter| *parameter != "--")
        .filter(|parameter| is_kept(parameter))
        .map(str::to_owned)
        .collect()
}

fn is_kept(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or(parameter);
    // The kernel takes `-` and `_` in a name for the same.
    let name = name.replace('-', "_");
    KEPT.contains(&name.as_str()) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Splits at spaces that are not in double quotes, as the kernel does.
fn parameters(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    line.split(move |c: char| {
        quoted ^= c == '"';
        c.is_ascii_whitespace() && !quoted
    })
    .filter(|parameter| !parameter.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    #[test]
    fn only_what_concerns_memory_and_cpus_is_kept() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1 rd.luks.key=s3cret default_hugepagesz=1G \
                    hugepagesz=1G hugepages=16 transparent_hugepage=never memory_secret=1 \
                    numa_balancing=disable isolcpus=2-3 nohz-full=2 mitigations=auto,nosmt psi=1 \
                    cgroup_no_v1=all dyndbg=\"mem=hidden hugepages=7\" -- hugepages=9\n";
        assert_eq!(
            parse(line),
            [
                "default_hugepagesz=1G",
                "hugepagesz=1G",
                "hugepages=16",
                "transparent_hugepage=never",
                "numa_balancing=disable",
                "isolcpus=2-3",
                "nohz-full=2",
                "mitigations=auto,nosmt",
                "psi=1",
                "cgroup_no_v1=all",
            ]
        );
    }

    #[test]
    fn parsing_what_was_kept_keeps_it() {
        let kept = parse("quiet psi=1 memmap=\"4G!1G, 2G\" iommu=pt");
        assert_eq!(kept, ["psi=1", "memmap=\"4G!1G, 2G\"", "iommu=pt"]);
        assert_eq!(parse(&kept.join(" ")), kept);
    }

    #[test]
    fn a_hidden_command_line_leaves_the_rest() {
        let record = Record::default()
            .with_file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
            .with_answer("machine_architecture", &Present("x86_64"));
        let kernel =
            super::super::read_all(&Host::from_record(record)).kernel.into_value().unwrap();
        assert_eq!(kernel.release, "6.1.0-18-amd64");
        assert!(!kernel.parameters.is_present());
    }
}
