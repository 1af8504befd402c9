//! Who else used the CPUs in a window.

use std::collections::HashMap;
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
/// and all `clients` of these, the busiest first.
/// `host` is the host at the end: it knows their control groups.
pub fn busiest(host: &Host, start: &Snapshot, end: &Snapshot, clients: &[u32]) -> Vec<Other> {
    let before: HashMap<(u32, u64), Seconds> =
        start.processes.iter().map(|p| ((p.pid, p.started_ticks), p.cpu_s)).collect();
    let least_s = LEAST_SHARE * (end.uptime_s - start.uptime_s);
    let own = |pid| end.databases.iter().any(|database| database.pids.contains(&pid));
    let mut grown: Vec<_> = end
        .processes
        .iter()
        .map(|process| {
            let before = before.get(&(process.pid, process.started_ticks));
            (process, process.cpu_s - before.copied().unwrap_or_default())
        })
        .filter(|(process, cpu_s)| {
            (cpu_s.0 > least_s || clients.contains(&process.pid))
                && process.name != OWN
                && !own(process.pid)
        })
        .collect();
    grown.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let other = |(process, cpu_s): (&untax_core::snapshot::ProcessTime, Seconds)| Other {
        pid: process.pid,
        name: process.name.clone(),
        cgroup: cgroup::path_of(host, process.pid),
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
