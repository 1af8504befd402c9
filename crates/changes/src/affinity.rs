//! The CPUs of threads: reading, narrowing and widening them.
//!
//! Threads are narrowed within the cpuset of their control group and never beyond it: the kernel cuts a
//! mask at the cpuset, and refuses one that lies outside of it. Children inherit a mask and are in no
//! list, so threads are put back by the process tree and by the masks that were set.

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;
use untax_core::Reading;
use untax_core::cpus::Cpus;
use untax_core::host::CgroupLayout;
use untax_core::plan::Family;
use untax_host::process::Stat;
use untax_host::{Host, cgroup, facts, process};

/// Looks at all threads that must find none narrowed: a thread may be born narrowed, and its parent end,
/// between the moments at which a look comes by each of them.
const CLEAN_LOOKS: u32 = 3;
/// Between two such looks.
const PAUSE: Duration = Duration::from_millis(1);
/// The most looks of one attempt; attempts are repeated by the caller.
const MOST_LOOKS: u32 = 50;

/// The CPUs of a thread; `None` when it ended.
pub fn of_thread(thread: u32) -> io::Result<Option<Cpus>> {
    let Some(pid) = pid(thread) else { return Ok(None) };
    match sched_getaffinity(Some(pid)) {
        Ok(set) => Ok(Some(
            (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|c| c as u32).collect(),
        )),
        Err(Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives a thread these CPUs; false when it ended, or when none of them is in its cpuset any more.
pub fn set(thread: u32, cpus: &Cpus) -> io::Result<bool> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| (*cpu as usize) < CpuSet::MAX_CPU) {
        set.set(cpu as usize);
    }
    give(thread, &set)
}

/// Gives a thread all CPUs that its cpuset has, now and later.
fn set_all(thread: u32) -> io::Result<bool> {
    let mut set = CpuSet::new();
    for cpu in 0..CpuSet::MAX_CPU {
        set.set(cpu);
    }
    give(thread, &set)
}

fn give(thread: u32, set: &CpuSet) -> io::Result<bool> {
    let Some(pid) = pid(thread) else { return Ok(false) };
    match sched_setaffinity(Some(pid), set) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH | Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn pid(thread: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(thread).ok()?)
}

/// The processes of a host, as far as families need them. Each is read once, when it is first seen.
#[derive(Debug, Default)]
pub struct Processes {
    known: BTreeMap<u32, Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    parent: u32,
    started_ticks: u64,
}

impl Known {
    fn of(stat: &Stat) -> Self {
        Self { parent: stat.parent, started_ticks: stat.started_ticks }
    }
}

impl Processes {
    /// Looks for processes that came and went since the last look.
    pub fn look(&mut self, host: &Host) -> Reading<()> {
        host.names("/proc").map(|names| {
            let pids: BTreeSet<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
            self.known.retain(|pid, _| pids.contains(pid));
            for pid in
                pids.into_iter().filter(|pid| !self.known.contains_key(pid)).collect::<Vec<_>>()
            {
                let stat = process::stat(host, pid).into_value();
                self.known.extend(stat.map(|stat| (pid, Known::of(&stat))));
            }
        })
    }

    /// The same, reading each again: parents end, and pids are used again.
    pub fn look_anew(&mut self, host: &Host) -> Reading<()> {
        self.known.clear();
        self.look(host)
    }

    /// The root of a family, where it still runs, and all that descend from it. Descendants for which
    /// `is_apart` are left out, with theirs.
    pub fn descendants(&self, family: &Family, is_apart: impl Fn(u32) -> bool) -> Vec<u32> {
        let is_root = |known: &Known| known.started_ticks == family.started_ticks;
        if !self.known.get(&family.root).is_some_and(is_root) {
            return Vec::new();
        }
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (pid, known) in &self.known {
            children.entry(known.parent).or_default().push(*pid);
        }
        let (mut members, mut next) = (vec![family.root], 0);
        while let Some(pid) = members.get(next) {
            let own = children.get(pid).into_iter().flatten().copied();
            let own: Vec<u32> = own.filter(|child| !is_apart(*child)).collect();
            members.extend(own);
            next += 1;
        }
        members
    }

    /// Processes outside of the tree that may have been born in it: they started later than its first
    /// change, by the same user and in the same control groups.
    pub(crate) fn orphans(&self, host: &Host, family: &Family, tree: &[u32]) -> Vec<u32> {
        let tree: BTreeSet<u32> = tree.iter().copied().collect();
        let is_late = |known: &Known| known.started_ticks >= family.since_ticks;
        let late = self.known.iter().filter(|(pid, known)| is_late(known) && !tree.contains(pid));
        let is_alike = |pid: &u32| {
            groups(host, *pid).value().is_some_and(|now| are_same_groups(now, &family.groups))
                && process::status(host, *pid).value().and_then(|status| status.uid)
                    == Some(family.uid)
        };
        late.map(|(pid, _)| *pid).filter(is_alike).collect()
    }
}

/// `/proc/PID/cgroup`.
pub fn groups(host: &Host, pid: u32) -> Reading<String> {
    host.text(&format!("/proc/{pid}/cgroup"))
}

/// Whether two `/proc/PID/cgroup` name the same groups. A hierarchy that only one of them has was mounted, or
/// unmounted, between both.
fn are_same_groups(one: &str, other: &str) -> bool {
    let paths = |text: &str| -> BTreeMap<String, String> {
        let line = |line: &str| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            Some((controllers.to_owned(), path.to_owned()))
        };
        text.lines().filter_map(line).collect()
    };
    let (one, other) = (paths(one), paths(other));
    let mut shared = one
        .iter()
        .filter_map(|(controllers, path)| Some(path == other.get(controllers)?))
        .peekable();
    shared.peek().is_some() && shared.all(|is_same| is_same)
}

/// The threads of a process; none when it ended.
pub fn threads(host: &Host, pid: u32) -> Vec<u32> {
    let names = host.names(&format!("/proc/{pid}/task")).into_value().unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// One look at all threads that a family may have.
struct Look {
    host: Host,
    layout: Option<CgroupLayout>,
    processes: Processes,
    allowed: BTreeMap<String, Option<Cpus>>,
}

impl Look {
    fn new() -> Self {
        let host = Host::live();
        let layout = facts::cgroup_layout(&host).into_value();
        Self { host, layout, processes: Processes::default(), allowed: BTreeMap::new() }
    }

    /// Goes through all threads that the family may have and calls `act` for each that is narrowed to these
    /// CPUs; gives how many there are. With `hidden`, also for threads of the tree whose mask does not show:
    /// the kernel keeps a mask while a cpuset has none of its CPUs, and uses it again later.
    fn at(
        &mut self,
        family: &Family,
        cpus: &Cpus,
        hidden: bool,
        act: impl Fn(u32) -> io::Result<bool>,
    ) -> io::Result<u64> {
        self.allowed.clear();
        if let Some(why) = self.processes.look_anew(&self.host).why() {
            return Err(io::Error::other(format!("/proc: {why}")));
        }
        let tree = self.processes.descendants(family, |_| false);
        let orphans = self.processes.orphans(&self.host, family, &tree);
        let mut narrowed = 0;
        let all =
            tree.iter().map(|pid| (*pid, true)).chain(orphans.into_iter().map(|pid| (pid, false)));
        for (pid, is_of_tree) in all {
            let Some(allowed) = self.allowed_of(pid) else { continue };
            let within = cpus.and(&allowed);
            for thread in threads(&self.host, pid) {
                let Some(now) = of_thread(thread)? else { continue };
                if now == within && now != allowed {
                    narrowed += u64::from(act(thread)?);
                } else if hidden && is_of_tree && now == allowed {
                    act(thread)?;
                }
            }
        }
        Ok(narrowed)
    }

    /// The CPUs that the groups of a process leave to it; `None` when it ended.
    fn allowed_of(&mut self, pid: u32) -> Option<Cpus> {
        let groups = groups(&self.host, pid).into_value()?;
        let (host, layout) = (&self.host, self.layout.as_ref());
        let read = |groups: &str| match layout {
            Some(layout) => cgroup::cpus::allowed(host, layout, groups).into_value(),
            None => cgroup::cpus::online(host).into_value(),
        };
        self.allowed.entry(groups.clone()).or_insert_with(|| read(&groups)).clone()
    }
}

/// How many threads of a family are narrowed to these CPUs.
pub fn narrowed(family: &Family, cpus: &Cpus) -> io::Result<u64> {
    Look::new().at(family, cpus, false, |_| Ok(true))
}

/// Gives every thread of a family that is narrowed to these CPUs all of its cpuset. An application's own
/// masks stay: no mask is ever set that one of them has.
pub fn widen(family: &Family, cpus: &Cpus) -> io::Result<()> {
    let mut look = Look::new();
    until_clean(|number| look.at(family, cpus, number == 0, set_all))
}

/// Mends what a look finds, given the look's number, until enough looks in a row find nothing.
pub(crate) fn until_clean(mut look: impl FnMut(u32) -> io::Result<u64>) -> io::Result<()> {
    let mut clean = 0;
    for number in 0..MOST_LOOKS {
        let found = look(number)?;
        clean = if found == 0 { clean + 1 } else { 0 };
        if clean == CLEAN_LOOKS {
            break;
        }
        if found == 0 {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// A process with all that descend from it, as it is now; the clock says since when it is changed.
pub fn family(host: &Host, pid: u32) -> Reading<Family> {
    let now_ticks = process::ticks_per_second(host).and_then(|ticks| {
        let path = "/proc/uptime";
        let uptime = |text: &String| text.split(' ').next()?.parse::<f64>().ok();
        host.text(path).parse(path, uptime).map(|uptime_s| (uptime_s * ticks as f64) as u64)
    });
    let uid = process::status(host, pid).parse("Uid", |status| status.uid);
    process::stat(host, pid).and_then(|stat| {
        let family = |(since_ticks, uid, groups): (u64, u32, String)| Family {
            root: pid,
            started_ticks: stat.started_ticks,
            since_ticks,
            uid,
            groups,
        };
        now_ticks
            .and_then(|ticks| uid.map(|uid| (ticks, uid)))
            .and_then(|(ticks, uid)| groups(host, pid).map(|groups| (ticks, uid, groups)))
            .map(family)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A shell with a child; both end when this is dropped.
    struct Tree(Child);

    impl Tree {
        fn start() -> Self {
            Self(Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap())
        }

        fn pids(&self, host: &Host) -> Vec<u32> {
            let mut processes = Processes::default();
            for _ in 0..500 {
                processes.look_anew(host).into_value().unwrap();
                let pids = processes
                    .descendants(&family(host, self.0.id()).into_value().unwrap(), |_| false);
                if pids.len() > 1 {
                    return pids;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            panic!("the shell started nothing");
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let host = Host::live();
            for pid in self.pids(&host).into_iter().filter_map(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_hierarchy_that_is_mounted_meanwhile_makes_no_other_groups() {
        let before = "3:cpuset:/a\n2:cpu,cpuacct:/a\n0::/";
        assert!(are_same_groups(before, before));
        assert!(are_same_groups(before, "9:hugetlb:/\n4:cpuset:/a\n2:cpu,cpuacct:/a\n0::/"));
        assert!(!are_same_groups(before, "3:cpuset:/b\n2:cpu,cpuacct:/a\n0::/"));
        assert!(!are_same_groups(before, ""), "nothing is known");
    }

    #[test]
    fn a_tree_is_widened_and_an_own_mask_stays() {
        let host = Host::live();
        let all = of_thread(std::process::id()).unwrap().unwrap();
        if all.len() < 2 {
            return println!("SKIPPED: one CPU has no part");
        }
        let tree = Tree::start();
        let pids = tree.pids(&host);
        let family = family(&host, tree.0.id()).into_value().unwrap();
        let one: Cpus = all.iter().take(1).collect();
        let other: Cpus = all.iter().skip(1).take(1).collect();
        assert!(set(pids[0], &one).unwrap() && set(pids[1], &other).unwrap());
        assert_eq!(narrowed(&family, &one).unwrap(), 1);
        widen(&family, &one).unwrap();
        assert_eq!(of_thread(pids[0]).unwrap(), Some(all.clone()));
        assert_eq!(of_thread(pids[1]).unwrap(), Some(other.clone()), "a mask that was not named");
        widen(&family, &other).unwrap();
        assert_eq!(of_thread(pids[1]).unwrap(), Some(all));
    }

    #[test]
    fn a_pid_that_another_process_has_is_no_root() {
        let host = Host::live();
        let mut processes = Processes::default();
        processes.look(&host).into_value().unwrap();
        let own = family(&host, std::process::id()).into_value().unwrap();
        assert_eq!(processes.descendants(&own, |_| false)[0], std::process::id());
        let before = Family { started_ticks: own.started_ticks - 1, ..own };
        assert!(processes.descendants(&before, |_| false).is_empty());
    }
}
