//! Who else used the CPUs in a window.

use std::collections::{HashMap, HashSet};
use untax_core::snapshot::ProcessTime;
use untax_core::window::Other;
use untax_core::{Seconds, Snapshot};
use untax_host::{Host, cgroup};

/// This program and its children: what they cost is told in a result of its own.
const OWN: &str = "untax";

/// More neighbours than so many are not worth a person's time. Clients are kept beside them: what
/// they take is part of the load, however little that is while neighbours have the CPUs.
const MOST: usize = 12;

/// Less than this share of one CPU is what any idle service takes.
const LEAST_SHARE: f64 = 0.005;

/// The processes that used the CPUs most between two snapshots, those of the databases left out,
/// and all `clients` of these, the busiest first. What a process took that has ended is told of who
/// started it, and waited for its end.
/// `host` is the host at the end: it knows their control groups.
pub fn busiest(host: &Host, start: &Snapshot, end: &Snapshot, clients: &[u32]) -> Vec<Other> {
    let before = before(&start.processes, &end.processes);
    let least_s = LEAST_SHARE * (end.uptime_s - start.uptime_s);
    let own = |pid| end.databases.iter().any(|database| database.pids.contains(&pid));
    let mut grown: Vec<_> = end
        .processes
        .iter()
        .map(|process| {
            let before = before.get(&identity(process)).copied().unwrap_or_default();
            (process, process.cpu_s - before)
        })
        .filter(|(process, cpu_s)| {
            (cpu_s.0 > least_s || clients.contains(&process.pid))
                && process.name != OWN
                && !own(process.pid)
        })
        .collect();
    grown.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let other = |(process, cpu_s): (&ProcessTime, Seconds)| Other {
        pid: process.pid,
        name: process.name.clone(),
        cgroup: cgroup::path_of(host, process.pid),
        threads: process.threads,
        cpu_s,
    };
    let mut neighbours = 0;
    grown.retain(|(process, _)| {
        let client = clients.contains(&process.pid);
        neighbours += usize::from(!client);
        client || neighbours <= MOST
    });
    grown.into_iter().map(other).collect()
}

/// What tells a process from all others: its pid, and when it was started.
type Identity = (u32, u64);

fn identity(process: &ProcessTime) -> Identity {
    (process.pid, process.started_ticks)
}

/// What each process that there is at the end, or was when the window began, had taken until then;
/// what one had taken that has ended since counts with who has taken over its time.
fn before(start: &[ProcessTime], end: &[ProcessTime]) -> HashMap<Identity, Seconds> {
    let lives: HashSet<Identity> = end.iter().map(identity).collect();
    let by_pid: HashMap<u32, &ProcessTime> = start.iter().map(|p| (p.pid, p)).collect();
    let mut before = HashMap::new();
    for process in start {
        let parent = |process: &&ProcessTime| by_pid.get(&process.parent).copied();
        // A table that was read while it changed may have a circle.
        let mut line = std::iter::successors(Some(process), parent).take(start.len());
        if let Some(heir) = line.find(|process| lives.contains(&identity(process))) {
            let taken_s: &mut Seconds = before.entry(identity(heir)).or_default();
            *taken_s = *taken_s + process.cpu_s;
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process((pid, parent, cpu_s): (u32, u32, f64)) -> ProcessTime {
        let name = format!("name {pid}");
        ProcessTime { pid, started_ticks: 9, parent, name, threads: 1, cpu_s: Seconds(cpu_s) }
    }

    #[test]
    fn what_has_ended_counts_with_who_started_it_and_only_since_the_start() {
        // 30 is a build that starts one compiler after the other; 40 has lost its parent.
        let start = [(1, 0, 2.0), (30, 1, 5.0), (31, 30, 1.0), (32, 31, 0.5), (40, 39, 3.0)];
        let end = [(1, 0, 2.0), (30, 1, 9.0), (40, 1, 3.5)];
        let [start, end] = [start.map(process).to_vec(), end.map(process).to_vec()];
        let before = before(&start, &end);
        let grown = |pid| {
            let process = end.iter().find(|process| process.pid == pid).unwrap();
            ((process.cpu_s - before[&identity(process)]).0 * 1000.0).round() as i64
        };
        assert_eq!([1, 30, 40].map(grown), [0, 2500, 500]);
    }
}
