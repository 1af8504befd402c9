//! `neighbour-reclaim`: the database frees memory because others take it.

use crate::catalogue::Rule;
use crate::stall::{self, Stall, WORTH, Words, percent};
use untax_core::activity::Doing;
use untax_core::finding::Says;
use untax_core::pressure::GroupMemory;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Reading, Window};

pub const RULE: Rule = Rule {
    id: "neighbour-reclaim",
    summary: "another control group takes the memory that the database then has to free",
    what: "A limit on a group above the database (a pod with a sidecar, a slice, kubepods) or the \
           machine's own memory is shared. Whoever allocates when it is full frees pages first, \
           whoever filled it: a backup that reads files or a neighbour that grows makes the \
           database reclaim, though its own group is far from any limit of its own.",
    measured: "The time that the database's threads spend in reclaim (as reclaim-stall), when the \
               limit in the way was that of a group that it shares (memory.events.local high and \
               max, or memory.failcnt, grew) or, with no limit in the way, the machine's \
               (allocstall of /proc/vmstat grew). Of that time as much is charged here as other \
               groups took of the memory taken below that limit (pages reclaimed and held of \
               cgroup v2; pgpgin of v1, which counts pieces of memory, times their mean size); \
               the rest is reclaim-stall.",
    fix: "Give the named group a limit of its own (memory.high, MemoryHigh=, limits.memory), or \
          protect the database (memory.low, MemoryLow=, memory request with memory QoS).",
    sources: &[
        "kernel.org: admin-guide/cgroup-v2, memory.events.local, memory.low",
        "kernel.org: admin-guide/cgroup-v1/memory, failcnt",
        "kernel.org: filesystems/proc, vmstat",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "4.20 (PSI); names the limit exactly since 5.2 (memory.events.local)",
    cost: "three or four small files for each control group, at both ends of the window",
    evaluate,
};

/// Who took memory below the limit that the database met.
pub struct Neighbours<'a> {
    /// The groups, those that took most first.
    groups: Vec<&'a GroupMemory>,
    /// The group whose limit was in the way; the machine's memory when there is none.
    limited: Option<&'a str>,
    /// What of all that was taken they took.
    pub part: f64,
}

/// The neighbours that made a database reclaim; none where its own limit was in the way.
pub fn neighbours<'a>(window: &'a Window, pair: &Pair) -> Option<Neighbours<'a>> {
    let groups = window.groups.value()?;
    let own = own_group(pair)?;
    let met = |path: &str| groups.iter().find(|group| group.cgroup == path && group.at_limit > 0);
    let limited = lineage(own).find_map(met).map(|group| group.cgroup.as_str());
    if limited == Some(own) || (limited.is_none() && !machine_stalled(window)) {
        return None;
    }
    let scope = limited.unwrap_or_default();
    let shares = |group: &&GroupMemory| is_below(&group.cgroup, scope);
    let (mine, others): (Vec<&GroupMemory>, Vec<&GroupMemory>) = groups
        .iter()
        .filter(shares)
        .partition(|group| group.cgroup == own || is_below(&group.cgroup, own));
    // What processes of a group above it took is nobody's: it may be the database's.
    let others = others.into_iter().filter(|group| !is_below(own, &group.cgroup));
    let mut others: Vec<&GroupMemory> = others.filter(|group| group.taken_pages > 0).collect();
    others.sort_by_key(|group| std::cmp::Reverse(group.taken_pages));
    let sum = |groups: &[&GroupMemory]| groups.iter().map(|g| g.taken_pages as f64).sum::<f64>();
    let (mine, taken) = (sum(&mine), sum(&others));
    (taken > 0.0).then(|| Neighbours { groups: others, limited, part: taken / (taken + mine) })
}

/// The group that the database's memory counts in; none for the root, which shares with all.
fn own_group<'a>(pair: &Pair<'a>) -> Option<&'a str> {
    let paths = &pair.end.cgroup.value()?.paths;
    let own = paths.get("memory").or_else(|| paths.get("unified"))?;
    (own != "/").then_some(own)
}

/// A group and those above it, nearest first, the root left out.
fn lineage(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        path.rfind('/').filter(|end| *end > 0).map(|end| &path[..end])
    })
}

fn is_below(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

fn machine_stalled(window: &Window) -> bool {
    let stalls = |snapshot: &untax_core::Snapshot| {
        snapshot.host.vm_counts.value()?.allocation_stalls.value().copied()
    };
    stalls(&window.end).zip(stalls(&window.start)).is_some_and(|(end, start)| end > start)
}

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        let counts = [Doing::ReclaimOnCpu, Doing::ReclaimStalled];
        let stall = Stall::of(window, pair, |spent| counts.contains(&spent.doing));
        stall.and_then(|stall| {
            let Some(stall) = stall.filter(|stall| stall.share.mid >= WORTH) else {
                return Reading::Present(None);
            };
            window.groups.as_ref().map(|_| {
                let neighbours = neighbours(window, pair)?;
                let stall = stall.times(neighbours.part);
                (stall.share.mid >= WORTH).then(|| found(&stall, &neighbours, pair))
            })
        })
    })
}

fn found(stall: &Stall, neighbours: &Neighbours, pair: &Pair) -> Says {
    let first = neighbours.groups.first().map_or("", |group| group.cgroup.as_str());
    let place = match neighbours.limited {
        Some(group) => format!("below the limit of {group}"),
        None => "of the machine's".to_owned(),
    };
    let mut evidence = vec![Evidence::new(
        "taken by others",
        neighbours.part,
        "share",
        "pgsteal and memory.current, or pgpgin of memory.stat",
    )];
    for group in neighbours.groups.iter().take(3) {
        let per_s = group.taken_pages as f64 / pair.seconds.max(f64::EPSILON);
        let name = format!("taken by {}", group.cgroup);
        evidence.push(Evidence::new(&name, per_s, "pages/s", "its memory.stat"));
        if let Some(stalled_s) = group.stalled_s.value() {
            let name = format!("{} waited for memory", group.cgroup);
            evidence.push(Evidence::new(&name, stalled_s.0, "s", "its memory.pressure, some"));
        }
    }
    stall::finding(
        RULE.id,
        stall,
        Words {
            summary: format!(
                "{} of its time freeing memory {place} that {first} takes",
                percent(stall.share.mid)
            ),
            fix: format!("limit {first} (memory.high), or protect the database (memory.low)"),
            evidence,
            method: "time in direct reclaim and asleep on memory, traced, over active time, x \
                     what other groups took of the memory taken below the shared limit"
                .to_owned(),
            remedy: Some("memory-protection"),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found};
    use untax_core::pressure::VmCounts;
    use untax_core::{Bytes, Finding};

    fn window(groups: Vec<GroupMemory>, stalls: u64) -> Window {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 6.0), (Doing::ReclaimStalled, 4.0)]);
        let limit = test_window::limit("/pod/db", Bytes(1), Bytes(0));
        window.end.databases[0].cgroup = test_window::cgroup(vec![limit]);
        for (snapshot, stalls) in [(&mut window.start, 0), (&mut window.end, stalls)] {
            snapshot.host.vm_counts = Reading::Present(VmCounts {
                allocation_stalls: Reading::Present(3 + stalls),
                numa_hint_faults: Reading::Absent(String::new()),
                numa_hint_faults_local: Reading::Absent(String::new()),
                numa_pages_migrated: Reading::Absent(String::new()),
            });
        }
        window.groups = Reading::Present(groups);
        window
    }

    fn charged(groups: Vec<GroupMemory>, stalls: u64) -> (Option<f64>, Option<f64>) {
        let window = window(groups, stalls);
        let share =
            |findings: Vec<Finding>| findings.first().map(|f| f.tax.as_ref().unwrap().share);
        let own = (crate::catalogue::find("reclaim-stall").unwrap().evaluate)(&window);
        (share(found(evaluate(&window))), share(found(own)))
    }

    fn mib(cgroup: &str, at_limit: u64, mebibytes: u64) -> GroupMemory {
        GroupMemory {
            cgroup: cgroup.to_owned(),
            at_limit,
            taken_pages: mebibytes * 256,
            pages_each: 1.0,
            stalled_s: Reading::Absent("v1".to_owned()),
        }
    }

    #[test]
    fn a_shared_limit_is_charged_to_who_fills_it_and_nothing_twice() {
        let groups = vec![
            mib("/pod/backup", 0, 300),
            mib("/pod/db", 0, 80),
            mib("/pod/db/child", 0, 20),
            mib("/pod", 500, 0),
            mib("/elsewhere", 900, 9000),
            mib("/podlike", 0, 9000),
        ];
        let findings = found(evaluate(&window(groups.clone(), 0)));
        assert!(findings[0].summary.contains("below the limit of /pod that /pod/backup takes"));
        let (others, own) = charged(groups, 0);
        assert!((others.unwrap() - 0.3).abs() < 1e-9, "three quarters of 0.4");
        assert!((own.unwrap() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn its_own_limit_is_its_own() {
        let groups = vec![mib("/pod/backup", 0, 300), mib("/pod/db", 7, 1), mib("/pod", 500, 0)];
        assert_eq!(charged(groups, 9), (None, Some(0.4)));
    }

    #[test]
    fn the_machine_is_shared_by_all_but_only_when_it_was_short() {
        let groups = vec![mib("/batch", 0, 900), mib("/pod/db", 0, 100), mib("/full", 5, 0)];
        let (others, own) = charged(groups.clone(), 50);
        assert!((others.unwrap() - 0.36).abs() < 1e-9);
        assert!((own.unwrap() - 0.04).abs() < 1e-9);
        assert_eq!(charged(groups, 0), (None, Some(0.4)));
        assert_eq!(charged(vec![mib("/pod/db", 0, 100)], 50), (None, Some(0.4)), "nobody else");
    }
}
