//! Processes: `/proc/PID/stat`, `status`, `schedstat` and `maps`, parsed by hand because a check
//! reads them for every process of the host.

mod conntrack;
mod maps;
mod scheduling;
mod stat;
mod status;
mod tcp;

use crate::Host;
pub use maps::{Mapping, parse as parse_maps};
pub use scheduling::{Scheduling, parse as parse_scheduling};
pub use stat::{Stat, parse as parse_stat};
pub use status::{Status, parse as parse_status};
pub use tcp::{Sent, TCP_LISTEN, listening_sockets};
use untax_core::Reading::{self, Absent, Present};
use untax_core::Seconds;
use untax_core::database::TcpCounts;
use untax_core::network::Conntrack;

/// The `stat` of every process, in ascending order of pid. Processes that end while the list is
/// read are left out, like those that ended before.
pub fn all(host: &Host) -> Reading<Vec<Stat>> {
    host.names("/proc").map(|names| {
        let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        pids.sort_unstable();
        pids.into_iter().filter_map(|pid| stat(host, pid).into_value()).collect()
    })
}

/// `/proc/PID/stat`.
pub fn stat(host: &Host, pid: u32) -> Reading<Stat> {
    let path = format!("/proc/{pid}/stat");
    host.text(&path).parse(&path, |text| stat::parse(text))
}

/// `/proc/PID/status`.
pub fn status(host: &Host, pid: u32) -> Reading<Status> {
    host.text(&format!("/proc/{pid}/status")).map(|text| status::parse(&text))
}

/// What TCP counts in the network namespace of a process.
pub fn tcp(host: &Host, pid: u32) -> Reading<TcpCounts> {
    let path = format!("/proc/{pid}/net/netstat");
    host.text(&format!("/proc/{pid}/net/snmp"))
        .and_then(|snmp| host.text(&path).parse(&path, |netstat| tcp::parse(&snmp, netstat)))
}

/// The connection table of the network namespace of a process; of this one for `self`.
pub fn conntrack(host: &Host, pid: impl std::fmt::Display) -> Reading<Conntrack> {
    let path = format!("/proc/{pid}/net/stat/nf_conntrack");
    match host.text(&path) {
        Absent(_) => Absent("this kernel tracks no connections".to_owned()),
        text => text.parse(&path, |text| conntrack::parse(text)),
    }
}

/// `/proc/PID/maps`. Takes the process's `mmap_lock` for reading; ask for one process of a
/// database, not for all.
pub fn maps(host: &Host, pid: u32) -> Reading<Vec<Mapping>> {
    host.text(&format!("/proc/{pid}/maps")).map(|text| maps::parse(&text))
}

/// Time on CPU and time runnable of one thread group's threads.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SchedTime {
    /// Time on CPU.
    pub on_cpu_s: Seconds,
    /// Time runnable without a CPU, throttling included.
    pub runnable_s: Seconds,
}

/// Sums `/proc/PID/task/*/schedstat`. A single-threaded process needs no listing.
pub fn sched_time(host: &Host, pid: u32, threads: u32) -> Reading<SchedTime> {
    if threads <= 1 {
        return schedstat(host, &format!("/proc/{pid}/schedstat"));
    }
    let task = format!("/proc/{pid}/task");
    host.names(&task).and_then(|threads| {
        let mut readings =
            threads.iter().map(|tid| schedstat(host, &format!("{task}/{tid}/schedstat")));
        // Threads that ended meanwhile are left out. None that answers is no sum of zero.
        let Some(first) = readings.next() else { return Absent(format!("{task} is empty")) };
        readings.fold(first, SchedTime::sum)
    })
}

impl SchedTime {
    fn sum(a: Reading<Self>, b: Reading<Self>) -> Reading<Self> {
        match (a, b) {
            (Present(a), Present(b)) => Present(Self {
                on_cpu_s: a.on_cpu_s + b.on_cpu_s,
                runnable_s: a.runnable_s + b.runnable_s,
            }),
            (a, b) => a.or_else(|| b),
        }
    }
}

fn schedstat(host: &Host, path: &str) -> Reading<SchedTime> {
    host.text(path).parse(path, |text| parse_schedstat(text))
}

/// Parses `on-cpu-ns runnable-ns slices`. The last tells that the others are whole.
pub fn parse_schedstat(text: &str) -> Option<SchedTime> {
    let mut fields = text.split_ascii_whitespace().map(|f| f.parse::<u64>().ok());
    let (on_cpu, runnable, _slices) = (fields.next()??, fields.next()??, fields.next()??);
    Some(SchedTime { on_cpu_s: Seconds::from_ns(on_cpu), runnable_s: Seconds::from_ns(runnable) })
}

/// Clock ticks per second, the unit of times in `stat`.
pub fn ticks_per_second(host: &Host) -> Reading<u64> {
    host.observe("clock_ticks_per_second", || Present(rustix::param::clock_ticks_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    #[test]
    fn schedstat_needs_all_its_numbers() {
        let time = parse_schedstat("2000000000 500000000 7\n").unwrap();
        assert_eq!(time, SchedTime { on_cpu_s: Seconds(2.0), runnable_s: Seconds(0.5) });
        assert!(parse_schedstat("2000000000").is_none());
        assert!(parse_schedstat("2000000000 5").is_none(), "may be cut off");
        assert!(parse_schedstat("x y z").is_none());
    }

    #[test]
    fn threads_that_do_not_answer_are_not_zero() {
        let thread = |tid: u32| format!("/proc/7/task/{tid}/schedstat");
        let one = Record::default().with_file(&thread(7), "3 4 1\n").with_file(&thread(8), "?");
        let one = Host::from_record(one);
        let time = SchedTime { on_cpu_s: Seconds::from_ns(3), runnable_s: Seconds::from_ns(4) };
        assert_eq!(sched_time(&one, 7, 2), Present(time));

        let none = Record::default().with_file(&thread(7), "?").with_file(&thread(8), "");
        assert!(matches!(sched_time(&Host::from_record(none), 7, 2), Reading::Failed(_)));
    }
}
