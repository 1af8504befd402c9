//! What forbids CPUs to sleep deeply: power management limits (`PM QoS`).

use super::{Fact, formats};
use crate::Host;
use rustix::fs::{Mode, OFlags};
use untax_core::Reading::{self, Absent, Denied, Failed, Present};
use untax_core::host::{HostFacts, cpus};
use untax_core::idle::{NO_LIMIT, PowerLimits};

pub(super) const FACT: Fact = Fact {
    id: "power_limits",
    summary: "what forbids CPUs to sleep deeply: limits on latency (PM QoS), and the processes that hold them",
    source: "/dev/cpu_dma_latency, /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    privilege: "root for the limit of all CPUs",
    minimum_kernel: "2.6.25; limits of each CPU since 4.16",
    cost: "a small file for each CPU; where a limit is held, the open files of all processes",
    read,
};

const DEVICE: &str = "/dev/cpu_dma_latency";

/// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`, in us: nobody asks for anything.
const UNLIMITED_US: i32 = 2_000_000_000;

fn read(host: &Host, facts: &mut HostFacts) {
    let latency = host.observe("cpu_dma_latency", effective_latency);
    let of_cpus = limits_of_cpus(host);
    facts.power_limits = if latency.is_present() || of_cpus.is_present() {
        let holders = if latency.is_present() { holders(host) } else { Vec::new() };
        Present(PowerLimits { latency_us: latency, holders, of_cpus })
    } else {
        let why = "this kernel tells no limits on latency (PM QoS), or they were not captured";
        Absent(why.to_owned())
    };
}

/// The CPUs that have a limit of their own.
fn limits_of_cpus(host: &Host) -> Reading<Vec<(u32, String)>> {
    formats::line(host, "/sys/devices/system/cpu/online").and_then(|online| {
        let limit = |cpu: u32| {
            let file = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
            formats::line(host, &file).map(|limit| (cpu, limit)).into_result()
        };
        let all: Reading<Vec<(u32, String)>> =
            cpus(&online).map(limit).collect::<Result<_, _>>().into();
        all.map(|all| all.into_iter().filter(|(_, limit)| limit != "0").collect())
    })
}

/// The limit of all CPUs. To read the device asks for nothing.
fn effective_latency() -> Reading<u64> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut bytes = [0; 4];
    let read = rustix::fs::open(DEVICE, flags, Mode::empty())
        .and_then(|device| rustix::io::read(&device, &mut bytes));
    match read {
        Ok(4) => latency(i32::from_ne_bytes(bytes)),
        Ok(count) => Failed(format!("{DEVICE} gave {count} bytes rather than 4")),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NXIO) => {
            Absent(format!("this kernel has no {DEVICE}"))
        }
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => Denied(DEVICE.to_owned()),
        Err(error) => Failed(format!("{DEVICE}: {error}")),
    }
}

fn latency(value: i32) -> Reading<u64> {
    match u64::try_from(value) {
        Ok(us) if value < UNLIMITED_US => Present(us),
        _ => Absent(NO_LIMIT.to_owned()),
    }
}

/// The processes that have the device open: `tuned (pid 812)`.
fn holders(host: &Host) -> Vec<String> {
    let pids = host.names("/proc").into_value().unwrap_or_default();
    let holds = |pid: &&String| {
        let fds = host.names(&format!("/proc/{pid}/fd")).into_value().unwrap_or_default();
        let is_device = |fd: &String| {
            host.link(&format!("/proc/{pid}/fd/{fd}")).value().is_some_and(|to| to == DEVICE)
        };
        fds.iter().any(is_device)
    };
    let pids = pids.iter().filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()));
    let name = |pid: &String| {
        let name = formats::line(host, &format!("/proc/{pid}/comm")).into_value();
        format!("{} (pid {pid})", name.unwrap_or_else(|| "a process".to_owned()))
    };
    pids.filter(holds).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn record() -> Record {
        Record::default()
            .with_file("/sys/devices/system/cpu/online", "0-2\n")
            .with_file("/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "0\n")
            .with_file("/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "n/a\n")
            .with_file("/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "30\n")
    }

    fn read_from(record: Record) -> Reading<PowerLimits> {
        super::super::read_all(&Host::from_record(record)).power_limits
    }

    #[test]
    fn the_holder_of_a_limit_is_named() {
        let record = record()
            .with_answer("cpu_dma_latency", &Present(3_u64))
            .with_file("/proc/812/comm", "tuned\n")
            .with_link("/proc/812/fd/7", DEVICE)
            .with_link("/proc/1/fd/0", "/dev/null");
        let limits = read_from(record).into_value().unwrap();
        assert_eq!(limits.latency_us, Present(3));
        assert_eq!(limits.holders, ["tuned (pid 812)"]);
        assert_eq!(limits.of_cpus, Present(vec![(1, "n/a".to_owned()), (2, "30".to_owned())]));
    }

    #[test]
    fn no_limit_is_no_limit_of_zero() {
        assert!(matches!(latency(UNLIMITED_US), Absent(why) if why.contains("no process")));
        assert_eq!(latency(0), Present(0), "no sleep at all");
        assert!(!latency(-1).is_present());
        let denied: Reading<u64> = Denied(DEVICE.to_owned());
        let limits = read_from(record().with_answer("cpu_dma_latency", &denied));
        assert_eq!(limits.into_value().unwrap().latency_us, denied);
    }
}
