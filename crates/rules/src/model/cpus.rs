//! Which CPUs a database can have, and how much others are on these.

use std::collections::BTreeSet;
use untax_core::host::{CpuTime, HostFacts, cpus};
use untax_core::window::{Other, Pair};
use untax_core::{Database, Reading, Seconds, Window};

/// No kernel has more CPUs (`NR_CPUS`).
const MOST: u32 = 8192;

/// The CPUs of this host that a list names; all where there is none.
fn online_cpus(host: &HostFacts, list: Option<&str>) -> Option<BTreeSet<u32>> {
    let all: BTreeSet<u32> = host.each_cpu_time.value()?.iter().map(|(cpu, _)| *cpu).collect();
    // A list may name CPUs that are not there, however many.
    let named = |list| cpus(list).take_while(|cpu| *cpu <= MOST).filter(|cpu| all.contains(cpu));
    Some(list.map(|list| named(list).collect()).unwrap_or(all))
}

/// The CPUs that a database may use, where these are not all.
fn own_cpus(host: &HostFacts, database: &Database) -> Option<BTreeSet<u32>> {
    let own = online_cpus(host, Some(database.allowed_cpus.value()?))?;
    (!own.is_empty() && own.len() < host.each_cpu_time.value()?.len()).then_some(own)
}

/// The part (0..1) of the machine's CPUs that a database may use.
pub fn own_part(window: &Window, pair: &Pair) -> f64 {
    let host = &window.end.host;
    let parts = own_cpus(host, pair.end).zip(online_cpus(host, None));
    parts.map_or(1.0, |(own, all)| own.len() as f64 / all.len() as f64)
}

/// The time of the CPUs that a database may use, at the start of a window and at its end: of the whole
/// machine where it may use all, or they came or went meanwhile.
pub fn times(window: &Window, pair: &Pair) -> Reading<[CpuTime; 2]> {
    let hosts = [&window.start.host, &window.end.host];
    if let Some([start, end]) = own_times(hosts, pair.end) {
        return Reading::Present([start, end]);
    }
    let [start, end] = hosts.map(|host| host.cpu_time.clone());
    start.and_then(|start| end.map(|end| [start, end]))
}

fn own_times(hosts: [&HostFacts; 2], database: &Database) -> Option<[CpuTime; 2]> {
    let own = own_cpus(hosts[1], database)?;
    let [start, end] = hosts.map(|host| {
        let each = host.each_cpu_time.value()?.iter().filter(|(cpu, _)| own.contains(cpu));
        let times: Vec<CpuTime> = each.map(|(_, time)| *time).collect();
        let sum =
            |read: fn(&CpuTime) -> Seconds| Seconds(times.iter().map(|time| read(time).0).sum());
        (times.len() == own.len()).then(|| CpuTime {
            busy_s: sum(|time| time.busy_s),
            interrupts_s: Some(sum(|time| time.interrupts_s.unwrap_or_default())),
            idle_s: sum(|time| time.idle_s),
            steal_s: sum(|time| time.steal_s),
        })
    });
    Some([start?, end?])
}

/// How many CPUs a database can have: those that it may use, or what a limit leaves of them; one at
/// least.
pub fn count(host: &HostFacts, database: &Database) -> Reading<f64> {
    let own = own_cpus(host, database).map(|own| own.len() as f64);
    let all = || host.cpu.as_ref().map(|cpu| f64::from(cpu.logical));
    let limits = database.cgroup.value().and_then(|cgroup| cgroup.cpu.value());
    let least = limits.into_iter().flatten().map(|limit| limit.cpus).fold(f64::INFINITY, f64::min);
    own.map_or_else(all, Reading::Present).map(|cpus| cpus.min(least).max(1.0))
}

/// The part (0..1) of another process's time that it spends on CPUs that the database may use, if it
/// is on all alike that it may use itself.
pub fn overlap_part(window: &Window, pair: &Pair, other: &Other) -> f64 {
    let host = &window.end.host;
    let sets = own_cpus(host, pair.end).zip(online_cpus(host, other.allowed_cpus.as_deref()));
    match sets {
        Some((own, others)) if !others.is_empty() => {
            own.intersection(&others).count() as f64 / others.len() as f64
        }
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::Reading::Present;

    /// Four CPUs, of which the database may use the first two; the others are busy all the time.
    fn pinned() -> Window {
        let mut window = test_window::postgres();
        for (snapshot, by) in [(&mut window.start, 0.0), (&mut window.end, 10.0)] {
            let cpu = |busy: f64| CpuTime {
                busy_s: Seconds(busy * by),
                interrupts_s: Some(Seconds(0.0)),
                idle_s: Seconds((1.0 - busy) * by),
                steal_s: Seconds(0.0),
            };
            let each = [0.5, 0.5, 1.0, 1.0].map(cpu).into_iter().enumerate();
            let each = each.map(|(number, time)| (number as u32, time)).collect();
            snapshot.host.each_cpu_time = Present(each);
            snapshot.databases[0].allowed_cpus = Present("0-1,9-4000000000".to_owned());
        }
        window
    }

    #[test]
    fn a_database_has_the_time_of_its_own_cpus() {
        let mut window = pinned();
        let grown = |window: &Window| {
            let [start, end] =
                times(window, &window.databases().next().unwrap()).into_value().unwrap();
            [end.busy_s - start.busy_s, end.idle_s - start.idle_s]
        };
        assert_eq!(grown(&window), [Seconds(10.0); 2]);
        assert_eq!(count(&window.end.host, &window.end.databases[0]), Present(2.0));
        assert!((own_part(&window, &window.databases().next().unwrap()) - 0.5).abs() < 1e-9);
        // One of them was offline at first: what it counted since the machine started is no window's.
        if let Present(each) = &mut window.start.host.each_cpu_time {
            each.retain(|(cpu, _)| *cpu != 1);
        }
        let all = |read: fn(&CpuTime) -> Seconds| {
            let [start, end] =
                [&window.start, &window.end].map(|s| s.host.cpu_time.value().map(read));
            end.unwrap() - start.unwrap()
        };
        assert_eq!(grown(&window), [all(|time| time.busy_s), all(|time| time.idle_s)]);
    }

    #[test]
    fn who_is_kept_off_its_cpus_is_no_neighbour() {
        let window = pinned();
        let pair = window.databases().next().unwrap();
        let part = |allowed: Option<&str>| {
            let other = Other {
                allowed_cpus: allowed.map(str::to_owned),
                ..Other::unknown(9, "", Seconds(1.0), "not read")
            };
            overlap_part(&window, &pair, &other)
        };
        // In percent.
        let parts = ["2-3", "1-3", "0", "nonsense"].map(|list| (part(Some(list)) * 100.0) as u32);
        assert_eq!(parts, [0, 33, 100, 100]);
        assert!((part(None) - 0.5).abs() < 1e-9, "it may be anywhere");
    }

    #[test]
    fn who_may_use_all_has_all() {
        let mut window = pinned();
        for allowed in [Present("0-3".to_owned()), Reading::Denied("status".to_owned())] {
            window.end.databases[0].allowed_cpus = allowed;
            let pair = window.databases().next().unwrap();
            let end = times(&window, &pair).into_value().unwrap()[1];
            assert_eq!(Some(&end), window.end.host.cpu_time.value());
        }
    }
}
