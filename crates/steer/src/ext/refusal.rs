//! Where the `sched_ext` backend would do harm, or cannot work: it is refused there.

use untax_core::Reading;
use untax_core::host::CgroupLayout;
use untax_host::{Host, cgroup, process};

/// Why it is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kernel cannot do it.
    #[error(
        "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT); Linux 6.13 is the first with what \
         --backend ext needs"
    )]
    NoKernel,
    /// There can be one program only.
    #[error("the sched_ext program {0} schedules threads here already; end that first")]
    Another(String),
    /// A limit that such a program is not known to keep.
    #[error(
        "the control group {group} limits the CPU time of process {pid} to {cpus} CPUs, which \
         --backend ext is not known to keep"
    )]
    Limit {
        /// The process.
        pid: u32,
        /// The group.
        group: String,
        /// The limit.
        cpus: String,
    },
    /// A weight that such a program does not know.
    #[error(
        "the control group {group} of process {pid} has the CPU weight {weight}, which --backend ext \
         does not keep"
    )]
    Weight {
        /// The process.
        pid: u32,
        /// The group.
        group: String,
        /// Its weight.
        weight: u64,
    },
    /// A thread that comes before all threads of the program.
    #[error(
        "thread {thread} of process {pid} has a real-time policy: threads of --backend ext could wait \
         for it for ever"
    )]
    RealTime {
        /// The process.
        pid: u32,
        /// The thread.
        thread: u32,
    },
    /// A thread that another program was to schedule.
    #[error(
        "thread {thread} of process {pid} has the policy SCHED_EXT already, so that it could not be \
         told apart afterwards"
    )]
    HasClass {
        /// The process.
        pid: u32,
        /// The thread.
        thread: u32,
    },
    /// What would have to be known is not.
    #[error("{0}, so that --backend ext cannot be shown to be harmless")]
    Unknown(String),
}

/// The folder of sysfs that tells of `sched_ext`.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Looks whether the instances with these main processes may be scheduled by a program here.
pub(super) fn look(
    host: &Host,
    layout: Option<&CgroupLayout>,
    roots: &[u32],
) -> Result<(), Refusal> {
    let Reading::Present(state) = host.text(&format!("{SCHED_EXT}/state")) else {
        return Err(Refusal::NoKernel);
    };
    if state.trim() != "disabled" {
        let name = host.text(&format!("{SCHED_EXT}/root/ops")).into_value();
        let name = name.map_or_else(|| "(unknown)".to_owned(), |name| name.trim().to_owned());
        return Err(Refusal::Another(name));
    }
    for root in roots {
        if let Some(layout) = layout {
            groups(host, layout, *root)?;
        }
    }
    policies(host)
}

fn groups(host: &Host, layout: &CgroupLayout, pid: u32) -> Result<(), Refusal> {
    let unknown = |why: Option<String>| Refusal::Unknown(why.unwrap_or_default());
    let limits = cgroup::of_process(host, layout, pid).and_then(|group| group.cpu);
    let limits = match limits {
        Reading::Present(limits) => limits,
        gap => return Err(unknown(gap.why())),
    };
    if let Some(limit) = limits.first() {
        let (group, cpus) = (limit.cgroup.clone(), format!("{:.2}", limit.cpus));
        return Err(Refusal::Limit { pid, group, cpus });
    }
    match cgroup::cpu_weights(host, layout, pid) {
        Reading::Present(weights) => match weights.into_iter().next() {
            Some((group, weight)) => Err(Refusal::Weight { pid, group, weight }),
            None => Ok(()),
        },
        gap => Err(unknown(gap.why())),
    }
}

/// Looks for real-time threads of programs (those of the kernel run for a moment), and for such that have the
/// class already.
fn policies(host: &Host) -> Result<(), Refusal> {
    let pids = match host.names("/proc") {
        Reading::Present(names) => names,
        gap => return Err(Refusal::Unknown(gap.why().unwrap_or_default())),
    };
    for pid in pids.iter().filter_map(|name| name.parse::<u32>().ok()) {
        for thread in untax_changes::affinity::threads(host, pid) {
            let path = format!("/proc/{pid}/task/{thread}/stat");
            let now = host.text(&path).parse(&path, |text| process::parse_scheduling(text));
            // One that ended meanwhile delays nobody.
            let Reading::Present(now) = now else { continue };
            if now.is_real_time() && !now.is_of_kernel {
                return Err(Refusal::RealTime { pid, thread });
            }
            if now.policy == process::Scheduling::EXT {
                return Err(Refusal::HasClass { pid, thread });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::host::CgroupMount;
    use untax_host::Record;

    fn stat(policy: u32, flags: u32) -> String {
        format!(
            "7 (db) S 1 7 7 0 -1 {flags} 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 \
             0 {policy} 0 0"
        )
    }

    fn refusal(files: &[(&str, &str)]) -> Option<Refusal> {
        let mount = CgroupMount {
            controllers: vec!["unified".to_owned()],
            path: "/sys/fs/cgroup".to_owned(),
            root: "/".to_owned(),
        };
        let layout = CgroupLayout { mounts: vec![mount], memory_hugetlb_accounting: false };
        let record = Record::default()
            .with_file("/proc/7/cgroup", "0::/db\n")
            .with_file("/proc/7/task/7/stat", &stat(0, 0))
            .with_file("/sys/kernel/sched_ext/state", "disabled\n")
            .with_file("/sys/fs/cgroup/db/cpu.max", "max 100000\n")
            .with_file("/sys/fs/cgroup/db/cpu.weight", "100\n");
        let with = |record: Record, (path, text): &(&str, &str)| record.with_file(path, text);
        let host = Host::from_record(files.iter().fold(record, with));
        look(&host, Some(&layout), &[7]).err()
    }

    #[test]
    fn each_harm_is_refused_by_name() {
        assert_eq!(refusal(&[]), None);
        let none = look(&Host::from_record(Record::default()), None, &[]);
        assert_eq!(none, Err(Refusal::NoKernel));
        let other = [
            ("/sys/kernel/sched_ext/state", "enabled\n"),
            ("/sys/kernel/sched_ext/root/ops", "scx_lavd\n"),
        ];
        assert_eq!(refusal(&other), Some(Refusal::Another("scx_lavd".to_owned())));
        let limit = refusal(&[("/sys/fs/cgroup/db/cpu.max", "150000 100000\n")]).unwrap();
        assert!(limit.to_string().contains("/db limits"), "{limit}");
        let weight = refusal(&[("/sys/fs/cgroup/db/cpu.weight", "50\n")]);
        assert!(matches!(weight, Some(Refusal::Weight { weight: 50, .. })), "{weight:?}");
        let real_time = refusal(&[("/proc/9/task/9/stat", &stat(1, 0))]);
        assert_eq!(real_time, Some(Refusal::RealTime { pid: 9, thread: 9 }));
        assert_eq!(refusal(&[("/proc/9/task/9/stat", &stat(1, 0x20_0000))]), None, "the kernel's");
        let classed = refusal(&[("/proc/9/task/9/stat", &stat(7, 0))]);
        assert_eq!(classed, Some(Refusal::HasClass { pid: 9, thread: 9 }));
    }
}
