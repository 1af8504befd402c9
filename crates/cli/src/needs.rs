//! What untax needs of a host and of its user, one entry each: what that is for, and what is lost without it.

use untax_core::Reading;
use untax_host::{Host, facts};

/// One thing that untax needs.
pub struct Need {
    /// Its name in JSON.
    pub id: &'static str,
    /// What it lets untax see or do.
    pub lets: &'static str,
    /// What is lost without it.
    pub without: &'static str,
    /// How to get it.
    pub get: &'static str,
    /// What is there, in a few words, or why it is not.
    pub look: fn(&Host) -> Reading<String>,
}

/// All needs, the most important first.
pub const NEEDS: &[Need] = &[
    Need {
        id: "capabilities",
        lets: "look into every process, trace threads and change settings",
        without: "only databases of the same user are seen, nothing is traced, and nothing can be changed",
        get: "run as root; to check alone, CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SETUID and CAP_SETGID do",
        look: capabilities,
    },
    Need {
        id: "btf",
        lets: "fit BPF programs to this kernel",
        without: "nothing is traced",
        get: "a kernel with CONFIG_DEBUG_INFO_BTF, as distributions have it",
        look: |host| {
            let path = "/sys/kernel/btf/vmlinux";
            if host.exists(path) { Reading::Present(path.to_owned()) } else { absent(path) }
        },
    },
    Need {
        id: "lockdown",
        lets: "read the kernel's memory by BPF",
        without: "nothing is traced where lockdown is confidentiality",
        get: "boot with lockdown=integrity or none, if your rules allow it",
        look: lockdown,
    },
    Need {
        id: "schedstat",
        lets: "tell waiting for a CPU from sleeping without tracing",
        without: "without tracing, waiting for CPUs is unmeasured",
        get: "a kernel with CONFIG_SCHED_INFO",
        look: |host| host.text("/proc/self/schedstat").map(|_| "/proc/*/schedstat".to_owned()),
    },
    Need {
        id: "pressure",
        lets: "tell how long tasks were held up by CPUs, memory and disks",
        without: "without tracing, waiting for memory and disks is unmeasured",
        get: "boot with psi=1",
        look: |host| host.text("/proc/pressure/cpu").map(|_| "/proc/pressure".to_owned()),
    },
    Need {
        id: "cgroups",
        lets: "see limits of CPU, memory and disks, and whose they are",
        without: "limits are unmeasured",
        get: "mount the control groups: /sys/fs/cgroup",
        look: |host| {
            facts::read_all(host).cgroup_version.map(|version| format!("version {version}"))
        },
    },
    Need {
        id: "host-processes",
        lets: "see all databases of the host",
        without: "only those of this container are seen",
        get: "run on the host, or in a pod with hostPID: true",
        look: host_processes,
    },
];

fn absent<T>(path: &str) -> Reading<T> {
    Reading::Absent(format!("{path} is missing"))
}

/// Those that are needed to see everything: the kernel's names and their numbers (capability.h).
const CAPABILITIES: [(&str, u32); 5] = [
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

fn capabilities(host: &Host) -> Reading<String> {
    let status = host.text("/proc/self/status");
    let has = status.parse("/proc/self/status", |text| {
        let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    has.and_then(|has| {
        // CAP_SYS_ADMIN stands for the last two on older kernels, and for writing.
        let lacks = |bit: u32| has >> bit & 1 == 0;
        let all_but_admin = CAPABILITIES.iter().filter(|(name, _)| *name != "CAP_SYS_ADMIN");
        let missing: Vec<&str> =
            all_but_admin.filter(|(_, bit)| lacks(*bit)).map(|(name, _)| *name).collect();
        if missing.is_empty() {
            let changes = if lacks(21) { "enough to see, not to change" } else { "all" };
            Reading::Present(changes.to_owned())
        } else {
            Reading::Denied(format!("this user lacks {}", missing.join(", ")))
        }
    })
}

fn lockdown(host: &Host) -> Reading<String> {
    let path = "/sys/kernel/security/lockdown";
    match host.text(path) {
        // A kernel without it locks nothing.
        Reading::Absent(_) => Reading::Present("none".to_owned()),
        text => text.parse(path, |text| {
            let (_, rest) = text.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        }),
    }
    .and_then(|mode| match mode.as_str() {
        "confidentiality" => Reading::Denied("lockdown is confidentiality".to_owned()),
        _ => Reading::Present(mode),
    })
}

/// The kernel's own threads are seen only from the host's namespace of processes.
fn host_processes(host: &Host) -> Reading<String> {
    host.text("/proc/2/comm").and_then(|name| match name.trim() {
        "kthreadd" => Reading::Present("this is the host's namespace of processes".to_owned()),
        _ => Reading::Absent("this is a container's namespace of processes".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_answers_every_question() {
        for need in NEEDS {
            let seen = (need.look)(&Host::live());
            assert!(!matches!(seen, Reading::Failed(_)), "{}: {seen:?}", need.id);
        }
    }

    #[test]
    fn ids_are_kebab_case_and_each_is_there_once() {
        let mut ids: Vec<_> = NEEDS.iter().map(|need| need.id).collect();
        assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), NEEDS.len());
    }
}
