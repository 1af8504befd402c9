//! Who else used the CPUs in a window.

use std::collections::{HashMap, HashSet};
use std::ops::Add;
use untax_core::snapshot::ProcessTime;
use untax_core::window::Other;
use untax_core::{Reading, Seconds, Snapshot};
use untax_host::{Host, cgroup, process};

/// This program and its children, however they are called: what they cost is told in a result of its
/// own. A captured host has those that looked at it then.
const OWN: &str = "untax";

/// How this program is called, where its file was renamed; a child of it is called alike.
fn own_name(host: &Host, processes: &[ProcessTime]) -> String {
    let pid = host.observe("own-pid", || Reading::Present(std::process::id()));
    let own = processes.iter().find(|process| pid.value() == Some(&process.pid));
    own.map_or(OWN, |process| &process.name).to_owned()
}

/// Less than this share of one CPU is what any idle service takes. Clients are told whatever they take:
/// that is part of the load, however little it is while neighbours have the CPUs.
const LEAST_SHARE: f64 = 0.005;

/// The processes that used the CPUs between two snapshots, those of databases too, which may be
/// neighbours of each other, and all `clients` of these, the busiest first. What a process took that has
/// ended is told of who started it, and waited for its end.
/// `host` is the host at the end: it knows their control groups.
pub fn busiest(host: &Host, start: &Snapshot, end: &Snapshot, clients: &[u32]) -> Vec<Other> {
    let growth = Growth::between(start, end);
    let own_name = own_name(host, &end.processes);
    let is_own = |process: &ProcessTime| [OWN, &own_name].contains(&process.name.as_str());
    let in_kernel = |all: &[ProcessTime]| all.iter().map(ProcessTime::in_kernel).collect();
    let [before, after]: [Vec<ProcessTime>; 2] =
        [&start.processes, &end.processes].map(|all| in_kernel(all));
    let kernel_growth =
        Growth { busy_s: growth.busy_s, ..Growth::of_processes(&before, &after, 0.0) };
    let least_s = LEAST_SHARE * (end.uptime_s - start.uptime_s);
    let mut grown: Vec<(&ProcessTime, Other)> =
        end.processes.iter().map(|process| (process, growth.of(process))).collect();
    grown.retain(|(process, other)| {
        (other.cpu_s.0 > least_s || clients.contains(&process.pid)) && !is_own(process)
    });
    grown.sort_by(|a, b| b.1.cpu_s.0.total_cmp(&a.1.cpu_s.0));
    let placed = |(process, other): (&ProcessTime, Other)| Other {
        system_s: Some(kernel_growth.of(&process.in_kernel()).cpu_s),
        cgroup: cgroup::path_of(host, other.pid),
        allowed_cpus: process::status(host, other.pid).into_value().and_then(|s| s.allowed_cpus),
        ..other
    };
    grown.into_iter().map(placed).collect()
}

/// What the workers of the kernel took of the CPUs between two snapshots, but for those that ended
/// meanwhile; none when the length of a clock tick is not known, or they are not seen from here.
pub fn kernel_workers_s(start: &Snapshot, end: &Snapshot) -> Option<Seconds> {
    total_growth(&start.kernel_workers, &end.kernel_workers)
}

fn total_growth(start: &[ProcessTime], end: &[ProcessTime]) -> Option<Seconds> {
    let growth = Growth::of_processes(start, end, f64::INFINITY);
    let sum = end.iter().map(|worker| growth.of(worker).cpu_s).fold(Seconds(0.0), Add::add);
    (!end.is_empty()).then_some(sum)
}

/// What tells a process from all others: its pid, and when it was started.
type Identity = (u32, u64);

fn identity(process: &ProcessTime) -> Identity {
    (process.pid, process.started_ticks)
}

/// How the times of processes grew.
struct Growth {
    /// The time of each process at the start.
    before: HashMap<Identity, Seconds>,
    /// What each had waited for CPUs by then.
    waited_before: HashMap<Identity, Seconds>,
    /// What had ended below it by then, and what those had taken that have ended since.
    ended_before: HashMap<Identity, Seconds>,
    /// What the whole machine was busy.
    busy_s: f64,
}

impl Growth {
    fn between(start: &Snapshot, end: &Snapshot) -> Self {
        let busy_s = |snapshot: &Snapshot| Some(snapshot.host.cpu_time.value()?.busy_s.0);
        let grown = busy_s(end).zip(busy_s(start)).map(|(end, start)| end - start);
        Self::of_processes(&start.processes, &end.processes, grown.unwrap_or(f64::INFINITY))
    }

    fn of_processes(start: &[ProcessTime], end: &[ProcessTime], busy_s: f64) -> Self {
        let lives: HashSet<Identity> = end.iter().map(identity).collect();
        let by_pid: HashMap<u32, &ProcessTime> = start.iter().map(|p| (p.pid, p)).collect();
        let before = start.iter().map(|process| (identity(process), process.cpu_s)).collect();
        let waited = |process: &ProcessTime| Some((identity(process), process.waited_s?));
        let waited_before = start.iter().filter_map(waited).collect();
        let mut ended_before: HashMap<Identity, Seconds> = HashMap::new();
        for process in start {
            let parent = |process: &&ProcessTime| by_pid.get(&process.parent).copied();
            // A table that was read while it changed may have a circle.
            let mut line = std::iter::successors(Some(process), parent).take(start.len());
            if let Some(heir) = line.find(|process| lives.contains(&identity(process))) {
                let ended_s = ended_before.entry(identity(heir)).or_default();
                let itself = identity(heir) == identity(process);
                let own_s = if itself { Seconds(0.0) } else { process.cpu_s };
                *ended_s = *ended_s + own_s + process.ended_s;
            }
        }
        Self { before, waited_before, ended_before, busy_s }
    }

    fn of(&self, process: &ProcessTime) -> Other {
        let grown = |now: Seconds, then: &HashMap<Identity, Seconds>| {
            (now - then.get(&identity(process)).copied().unwrap_or_default()).0
        };
        // Another may have awaited their end, or nobody: then this is the time of other years.
        let ended_s = grown(process.ended_s, &self.ended_before);
        let ended_s = if (0.0..=self.busy_s).contains(&ended_s) { ended_s } else { 0.0 };
        let own_s = grown(process.cpu_s, &self.before).max(0.0);
        Other {
            threads: process.threads,
            ended_s: Seconds(ended_s),
            waited_s: self.cpu_wait(process),
            ..Other::unknown(process.pid, &process.name, Seconds(own_s + ended_s), "not read")
        }
    }

    /// How long it waited for CPUs; not known of one that had many threads at the start.
    fn cpu_wait(&self, process: &ProcessTime) -> Option<Seconds> {
        let itself = identity(process);
        let before = match self.waited_before.get(&itself) {
            None if self.before.contains_key(&itself) => return None,
            before => before.copied().unwrap_or_default(),
        };
        process.waited_s.map(|now| Seconds((now - before).0.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process((pid, parent, own, ended): (u32, u32, f64, f64)) -> ProcessTime {
        let [cpu_s, ended_s] = [own, ended].map(Seconds);
        let name = String::new();
        ProcessTime {
            pid,
            started_ticks: 9,
            parent,
            name,
            threads: 1,
            cpu_s,
            waited_s: None,
            ended_s,
            system_s: Seconds(0.25 * own),
            ended_system_s: Seconds(0.5 * ended),
        }
    }

    /// Milliseconds of each process at the end.
    fn grown<const N: usize, const M: usize>(
        start: [(u32, u32, f64, f64); N],
        end: [(u32, u32, f64, f64); M],
    ) -> [i64; M] {
        let growth = Growth::of_processes(&start.map(process), &end.map(process), 20.0);
        end.map(|one| (growth.of(&process(one)).cpu_s.0 * 1000.0).round() as i64)
    }

    #[test]
    fn what_has_ended_counts_with_who_started_it_and_only_since_the_start() {
        // 30 is a build that starts one compiler after the other.
        let start = [(1, 0, 2.0, 0.0), (30, 1, 1.0, 4.0), (31, 30, 1.0, 0.5), (32, 31, 0.5, 0.0)];
        assert_eq!(grown(start, [(1, 0, 2.0, 0.0), (30, 1, 1.5, 8.5)]), [0, 3000]);
    }

    #[test]
    fn the_kernels_part_is_counted_with_that_of_those_that_ended() {
        let start = [(30, 1, 1.0, 4.0), (31, 30, 1.0, 0.0)].map(process);
        let end = [(30, 1, 2.0, 8.0)].map(process);
        let [before, after] = [&start[..], &end[..]]
            .map(|all| all.iter().map(ProcessTime::in_kernel).collect::<Vec<_>>());
        let growth = Growth::of_processes(&before, &after, 20.0);
        // A quarter of its own second; half of the four, less what 31 had at the start.
        assert!((growth.of(&after[0]).cpu_s.0 - (0.25 + 1.75)).abs() < 1e-9);
    }

    #[test]
    fn this_program_is_known_whatever_its_name() {
        let named =
            |pid, name: &str| ProcessTime { name: name.to_owned(), ..process((pid, 1, 1.0, 0.0)) };
        let record = untax_host::Record::default().with_answer("own-pid", &Reading::Present(7_u32));
        let processes = [named(6, "batch"), named(7, "tax-of-ours")];
        assert_eq!(own_name(&Host::from_record(record), &processes), "tax-of-ours");
        assert_eq!(own_name(&Host::from_record(untax_host::Record::default()), &processes), OWN);
    }

    #[test]
    fn workers_come_and_go() {
        let start = [(50, 2, 2.0, 0.0), (51, 2, 9.0, 0.0)].map(process);
        let end = [(50, 2, 2.5, 0.0), (52, 2, 0.25, 0.0)].map(process);
        assert_eq!(total_growth(&start, &end), Some(Seconds(0.75)), "51 ended, 52 is new");
        assert_eq!(total_growth(&start, &[]), None, "in a container there are none to see");
    }

    #[test]
    fn what_was_waited_before_is_not_of_the_window() {
        let waiting = |pid, waited_s: Option<f64>| ProcessTime {
            waited_s: waited_s.map(Seconds),
            ..process((pid, 1, 1.0, 0.0))
        };
        let start = [waiting(5, Some(3.0)), waiting(6, None)];
        let end = [waiting(5, Some(3.5)), waiting(6, Some(9.0)), waiting(7, Some(0.25))];
        let growth = Growth::of_processes(&start, &end, 20.0);
        let waited = end.map(|one| growth.of(&one).waited_s.map(|seconds| seconds.0));
        assert_eq!(waited, [Some(0.5), None, Some(0.25)], "6 had many threads, 7 is new");
    }

    #[test]
    fn a_life_that_ends_is_no_window() {
        // 31 has lost its parent 30 and ended too: 600 s of it go to the first process.
        let start = [(1, 0, 2.0, 0.0), (30, 1, 5.0, 0.0), (31, 30, 600.0, 0.0)];
        assert_eq!(grown(start, [(1, 0, 2.0, 605.0)]), [0]);
        // Nobody awaits the children of 40.
        let start = [(40, 1, 1.0, 0.0), (41, 40, 7.0, 0.0)];
        assert_eq!(grown(start, [(40, 1, 1.5, 0.0)]), [500]);
    }
}
