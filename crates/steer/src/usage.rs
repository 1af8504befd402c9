//! CPU time: of each CPU of the machine, and of each instance.

use std::collections::BTreeMap;
use untax_changes::affinity::groups;
use untax_core::Reading::{self, Present};
use untax_core::host::CgroupLayout;
use untax_host::{Host, process};

/// Busy and all ticks of each CPU so far.
#[derive(Debug, Default, Clone)]
pub struct MachineTime(BTreeMap<u32, (u64, u64)>);

impl MachineTime {
    /// What `/proc/stat` tells.
    pub fn read(host: &Host) -> Reading<Self> {
        let path = "/proc/stat";
        host.text(path).parse(path, |text| parse(text))
    }

    /// The busy share of each CPU since an earlier moment. Time that a hypervisor took is busy: the CPU was
    /// not there for others.
    pub fn busy_since(&self, earlier: &Self) -> BTreeMap<u32, f64> {
        let share = |(cpu, (busy, all)): (&u32, &(u64, u64))| {
            let (busy_then, all_then) = earlier.0.get(cpu)?;
            let (busy, all) = (busy.checked_sub(*busy_then)?, all.checked_sub(*all_then)?);
            Some((*cpu, if all == 0 { 0.0 } else { busy as f64 / all as f64 }))
        };
        self.0.iter().filter_map(share).collect()
    }
}

/// `cpuN user nice system idle iowait irq softirq steal …`, in ticks.
fn parse(text: &str) -> Option<MachineTime> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("cpu")?.split_once(' '));
    let mut all = BTreeMap::new();
    for (number, times) in lines.filter(|(number, _)| !number.is_empty()) {
        let mut ticks = times.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
        let mut next = || ticks.next().flatten();
        let (user, nice, system, idle, iowait) = (next()?, next()?, next()?, next()?, next()?);
        let busy = user + nice + system + next()? + next()? + next()?;
        all.insert(number.parse().ok()?, (busy, busy + idle + iowait));
    }
    (!all.is_empty()).then_some(MachineTime(all))
}

/// From so many threads on, the ticks of a process are read instead of the time of each thread: a thousand
/// files take some ms.
const MOST_THREADS: u32 = 16;

/// Stands for all threads of a process.
const WHOLE: u32 = 0;

/// The length of a clock tick.
fn tick_ns(ticks_per_second: u64) -> u64 {
    1_000_000_000 / ticks_per_second.max(1)
}

/// CPU time of an instance, read in the cheapest way that is exact.
#[derive(Debug, Default)]
pub struct Usage {
    /// Its control group's counter, where no other process is in the group.
    group: Option<String>,
    /// Time on a CPU of each thread that was seen, ns.
    threads: BTreeMap<(u32, u32), u64>,
    /// Of the group: ns at the last look.
    last_ns: Option<u64>,
}

impl Usage {
    /// Chooses the way: by the group that holds all processes of the instance and nothing else, otherwise
    /// thread by thread.
    pub fn choose(&mut self, host: &Host, layout: Option<&CgroupLayout>, root: u32, pids: &[u32]) {
        let found = layout.and_then(|layout| own_group(host, layout, root, pids));
        if found != self.group {
            *self = Self { group: found, ..Self::default() };
        }
    }

    /// Whether a control group counts it, which costs one small file.
    pub fn is_by_group(&self) -> bool {
        self.group.is_some()
    }

    /// CPU time since the last look, ns. A thread that is new has no last look: it begins to count.
    pub fn spend_ns(&mut self, host: &Host, pids: &[u32]) -> u64 {
        if let Some(file) = &self.group
            && let Present(now_ns) = group_ns(host, file)
        {
            let last_ns = self.last_ns.replace(now_ns);
            return last_ns.map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        }
        let tick_ns = process::ticks_per_second(host).into_value().map_or(0, tick_ns);
        let mut now = BTreeMap::new();
        let mut spent_ns = 0;
        for pid in pids {
            let Present(stat) = process::stat(host, *pid) else { continue };
            if stat.threads > MOST_THREADS {
                let time_ns = (stat.user_ticks + stat.system_ticks) * tick_ns;
                if let Some(last_ns) = self.threads.get(&(*pid, WHOLE)) {
                    // What a tick holds may have been used before the last look: an idle server uses one
                    // now and then, and must not count as awake.
                    spent_ns += time_ns.saturating_sub(last_ns + tick_ns);
                }
                now.insert((*pid, WHOLE), time_ns);
                continue;
            }
            for thread in untax_changes::affinity::threads(host, *pid) {
                let path = format!("/proc/{pid}/task/{thread}/schedstat");
                let time = host.text(&path).parse(&path, |text| process::parse_schedstat(text));
                let Present(time) = time else { continue };
                let time_ns = (time.on_cpu_s.0 * 1e9) as u64;
                if let Some(last_ns) = self.threads.get(&(*pid, thread)) {
                    spent_ns += time_ns.saturating_sub(*last_ns);
                }
                now.insert((*pid, thread), time_ns);
            }
        }
        self.threads = now;
        spent_ns
    }
}

/// The file with the CPU time of the group of these processes, where the group has no others.
fn own_group(host: &Host, layout: &CgroupLayout, root: u32, pids: &[u32]) -> Option<String> {
    let groups = groups(host, root).into_value()?;
    let path_of = |controller: &str| {
        let fields = |line: &str| -> Option<(String, String)> {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            Some((controllers.to_owned(), path.to_owned()))
        };
        groups.lines().filter_map(fields).find_map(|(controllers, path)| {
            let named = if controllers.is_empty() { "unified" } else { controllers.as_str() };
            named.split(',').any(|name| name == controller).then_some(path)
        })
    };
    let directory = |controller: &str| {
        let mount = layout.mounts.iter().find(|m| m.controllers.iter().any(|c| c == controller))?;
        let path = path_of(controller).filter(|path| path != "/" && mount.root == "/")?;
        Some(format!("{}{path}", mount.path.trim_end_matches('/')))
    };
    let found = directory("cpuacct").map(|d| (format!("{d}/cpuacct.usage"), d));
    let found = found.or_else(|| directory("unified").map(|d| (format!("{d}/cpu.stat"), d)));
    let (file, directory) = found?;
    let members = host.text(&format!("{directory}/cgroup.procs")).into_value()?;
    let is_own = |line: &str| line.parse().is_ok_and(|pid| pids.contains(&pid));
    let is_leaf = host.names(&directory).value().is_some_and(|names| {
        !names.iter().any(|name| host.exists(&format!("{directory}/{name}/cgroup.procs")))
    });
    (is_leaf && members.lines().all(is_own) && host.exists(&file)).then_some(file)
}

/// Version 1 tells ns, version 2 µs.
fn group_ns(host: &Host, file: &str) -> Reading<u64> {
    host.text(file).parse(file, |text| {
        if let Ok(ns) = text.trim().parse::<u64>() {
            return Some(ns);
        }
        let us = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        us.trim().parse::<u64>().ok().map(|us| us * 1000)
    })
}

/// Read and write calls of these processes so far, those of their ended threads included.
pub fn calls(host: &Host, pids: &[u32]) -> Reading<u64> {
    let mut sum = Reading::absent("no process of it runs");
    for pid in pids {
        let path = format!("/proc/{pid}/io");
        let calls = host.text(&path).parse(&path, |text| {
            let field = |name: &str| {
                let value = text.lines().find_map(|line| line.strip_prefix(name))?;
                value.trim().parse::<u64>().ok()
            };
            Some(field("syscr:")? + field("syscw:")?)
        });
        sum = match (sum, calls) {
            (Present(sum), Present(calls)) => Present(sum + calls),
            (Present(sum), _) => Present(sum),
            (_, calls) => calls,
        };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::host::CgroupMount;
    use untax_host::Record;

    #[test]
    fn busy_shares_are_of_the_time_between_two_looks() {
        let at = |text: &str| parse(text).unwrap();
        let before =
            at("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 0 90 0 0 0 0 0 0\ncpu1 0 0 0 5 0 0 0 0 0 0\n");
        let after =
            at("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 14 0 3 91 1 0 0 1 0 0\ncpu1 0 0 0 15 0 0 0 0 0 0\n");
        assert_eq!(after.busy_since(&before), BTreeMap::from([(0, 0.8), (1, 0.0)]));
        assert!(parse("cpu 1 2 3\n").is_none() && parse("cpu0 1 2\n").is_none());
    }

    fn machine(procs: &str) -> (Host, CgroupLayout) {
        let mount = CgroupMount {
            controllers: vec!["unified".to_owned()],
            path: "/sys/fs/cgroup".to_owned(),
            root: "/".to_owned(),
        };
        let record = Record::default()
            .with_file("/proc/7/cgroup", "0::/db\n")
            .with_file("/sys/fs/cgroup/db/cgroup.procs", procs)
            .with_file("/sys/fs/cgroup/db/cpu.stat", "usage_usec 2000\nuser_usec 1\n")
            .with_file("/proc/7/stat", "7 (db) S 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0\n")
            .with_file("/proc/7/task/7/schedstat", "5000 1 1\n");
        let layout = CgroupLayout { mounts: vec![mount], memory_hugetlb_accounting: false };
        (Host::from_record(record), layout)
    }

    #[test]
    fn many_threads_are_counted_by_the_ticks_of_their_process() {
        let stat =
            |ticks: u64| format!("7 (db) S 1 7 7 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1000 0 5 0 0\n");
        let at = |ticks: u64| {
            let record = Record::default().with_file("/proc/7/stat", &stat(ticks));
            Host::from_record(record.with_answer("clock_ticks_per_second", &Present(100_u64)))
        };
        let mut usage = Usage::default();
        let mut spend = |ticks| usage.spend_ns(&at(ticks), &[7]) / 10_000_000;
        assert_eq!((spend(100), spend(101)), (0, 0), "a tick may have been used before");
        assert_eq!(spend(111), 9);
    }

    #[test]
    fn a_group_that_others_share_counts_for_nobody() {
        for (procs, by_group) in [("7\n8\n", true), ("7\n8\n9\n", false)] {
            let (host, layout) = machine(procs);
            let mut usage = Usage::default();
            usage.choose(&host, Some(&layout), 7, &[7, 8]);
            assert_eq!(usage.is_by_group(), by_group, "{procs:?}");
            assert_eq!(usage.spend_ns(&host, &[7, 8]), 0, "the first look counts nothing");
            assert_eq!(usage.spend_ns(&host, &[7, 8]), 0);
        }
        let (host, _) = machine("");
        assert_eq!(group_ns(&host, "/sys/fs/cgroup/db/cpu.stat"), Present(2_000_000));
    }
}
