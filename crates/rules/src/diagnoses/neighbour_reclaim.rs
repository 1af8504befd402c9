//! `neighbour-reclaim`: the database frees memory because others take it.

use crate::evidence;
use crate::model::accounting;
use crate::model::held_up::{self, HeldUp, is_untraced};
use crate::model::memory_limits::Neighbours;
use crate::model::memory_limits::neighbours;
use crate::model::memory_shortage;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::model::thrashing::{Thrashing, uncounted_reads};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Bytes, Diagnosis, Evidence, Finding, Reading, Severity, Unmeasured, Window};

pub const RULE: Rule = Rule {
    id: "neighbour-reclaim",
    summary: "another control group takes the memory that the database then has to free",
    what: "The machine's memory is shared, and so is a limit on a group above the database (a pod \
           with a sidecar, a slice, kubepods). When it is full, the next program that allocates \
           has to free pages first, even if another program filled it. So a backup that reads \
           files, or a neighbour that grows, makes the database wait, though the database is far \
           from its own limit. A neighbour can also have too small a limit for the files that it \
           reads: it then reads the same pages again and again, and keeps the disk and the CPUs \
           busy.",
    method: "The tax is the traced time that threads spent freeing memory or waiting for it, \
             multiplied by the part of that memory that other groups took.",
    measured: "The rule charges time that the database's threads spend in reclaim, or waiting for \
               what was evicted too early (as in reclaim-stall). The rule charges this time when a \
               group that the database shares met its limit (memory.events.local high and max, or \
               memory.failcnt, grew). The rule also charges this time when no limit was met, but \
               the machine's own memory was short (allocstall of /proc/vmstat grew). Of all memory \
               that was taken below that limit, other groups took a part. The rule charges this \
               part of the time; reclaim-stall charges the rest. A page that others take evicts at \
               most one page of the database. So pages that the database reads again do not count \
               as taken by it, up to the number that others took. Memory taken is pages reclaimed \
               and held (cgroup v2), or pgpgin, which counts pieces of memory, multiplied by their \
               mean size (v1). The gain assumes that the neighbours are gone; their CPU time, \
               which cpu-contended charges, then ends too. A neighbour may meet its own limit and \
               read again what that limit evicted (workingset_refault_file of its group). Two \
               parts of its cost are charged here. One part is taken from what others cost the \
               database on its disks (as in shared-filesystem). This part is the share of reads in \
               the disk cost, multiplied by the pages read again over all pages that others read. \
               The other part is taken from what neighbours cost the database on its CPUs (as in \
               cpu-contended): their time in the kernel (utime and stime of their processes). The \
               kernel time counts in proportion to pages read again over the pages that the \
               neighbours took. Waits for locks of the kernel are not known. Without tracing, the \
               rule finds a shared limit that was met; the tax, and neighbours that thrash, are \
               unmeasured. Without tracing, the severity follows from PSI (full): the share of the \
               window in which every task of the group with work to do waited for memory.",
    fix: "Give the named group a limit of its own (memory.high, MemoryHigh=, limits.memory). As an \
          alternative, protect the database (memory.low, MemoryLow=, memory request with memory \
          QoS). Raise the limit of a group that thrashes inside its own limit.",
    sources: &[
        "kernel.org: admin-guide/cgroup-v2, memory.events.local, memory.low",
        "kernel.org: admin-guide/cgroup-v1/memory, failcnt",
        "kernel.org: filesystems/proc, vmstat",
    ],
    privilege: "none; root (CAP_BPF and CAP_PERFMON) for its tax",
    minimum_kernel: "4.20 (PSI); 5.15 (bpf_task_pt_regs) for its tax",
    cost: "three or four small files for each control group, at both ends of the window",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let mut diagnoses = held_up::with_reasons(window, below_a_shared_limit(window));
    diagnoses.extend(window.databases().flat_map(|pair| beside_a_thrashing_group(window, &pair)));
    diagnoses
}

fn below_a_shared_limit(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        if is_untraced(pair)
            && let Some(finding) = untraced(window, pair)
        {
            return Reading::Present(Some(Says::Found(finding)));
        }
        memory_shortage::shortage_stall(window, pair).and_then(|stall| {
            let Some(stall) = stall.filter(|stall| stall.share.mid >= WORTH) else {
                return Reading::Present(None);
            };
            window.groups.as_ref().and_then(|_| neighbours(window, pair)).map(|neighbours| {
                let neighbours = neighbours?;
                let stall = stall
                    .times(neighbours.part)
                    .with_neighbours_cpu_time(neighbours_cpu_s(window, pair, &neighbours));
                (stall.share.mid >= WORTH).then(|| finding(&stall, &neighbours, pair))
            })
        })
    })
}

/// A neighbour that reads again and again what its own limit evicts.
fn beside_a_thrashing_group(window: &Window, pair: &Pair) -> Vec<Diagnosis> {
    let gap = |why: String| Says::Unmeasured(Unmeasured::new(RULE.id, why));
    let mut says: Vec<Says> = uncounted_reads(window, pair).map(gap).into_iter().collect();
    if let Some(thrashing) = Thrashing::of(window, pair) {
        says.push(thrashing_finding(&thrashing, window, pair));
        says.push(Says::Unmeasured(locks_gap()));
    }
    let of_pair = |says| Diagnosis { database: Some(pair.end.id.clone()), says };
    says.into_iter().map(of_pair).collect()
}

fn locks_gap() -> Unmeasured {
    let why = "tax: what the database waits for locks in the kernel that its neighbour's reclaim holds is \
               counted for all together";
    Unmeasured::new(RULE.id, why)
}

fn thrashing_finding(thrashing: &Thrashing, window: &Window, pair: &Pair) -> Says {
    let first = thrashing.groups.first().map_or("", |group| group.limited);
    let page = window.end.host.base_page_bytes.value().copied().unwrap_or(Bytes::KIB_4).0;
    let per_s = |count: f64| count / pair.seconds.max(f64::EPSILON);
    let mut evidence = Vec::new();
    for group in thrashing.groups.iter().take(3) {
        let again = per_s((group.read_again_pages * page) as f64);
        let again = Evidence::new(&evidence::READ_AGAIN_BY, again, "its memory.stat");
        evidence.push(again.of(group.limited));
    }
    evidence.push(Evidence::new(&evidence::DISK_SHARE_AGAIN, thrashing.disk.mid, "block requests"));
    let kernel = per_s(thrashing.kernel_s.mid);
    evidence.push(Evidence::new(&evidence::KERNEL_CPUS_AGAIN, kernel, "/proc/PID/stat"));
    let words = Words {
        summary: format!(
            "{} of its time behind {first}, which thrashes inside its own memory limit",
            percent(thrashing.stall.share.mid)
        ),
        fix: format!("raise the memory limit of {first}, or let it read less"),
        evidence,
        method:
            "what others cost it on its disks x what of it they read again, and on its CPUs x the \
                 kernel's part of it for pages read again, over active time"
                .to_owned(),
        remedy: None,
    };
    stall::modelled_finding(RULE.id, &thrashing.stall, words)
}

/// For how long these neighbours had CPUs: waiting for them is charged to `cpu-contended`, and ends
/// with them.
fn neighbours_cpu_s(window: &Window, pair: &Pair, neighbours: &Neighbours) -> f64 {
    accounting::cpu_s_in_groups(window, pair, |group| {
        neighbours.groups.iter().any(|g| g.cgroup == group)
    })
}

/// What the kernel counts, where nothing is traced: tasks that waited for memory that neighbours took.
fn untraced(window: &Window, pair: &Pair) -> Option<Finding> {
    let neighbours = neighbours(window, pair).into_value()??;
    let held = HeldUp::for_memory(window, pair).times(neighbours.part);
    (held.severity() > Severity::Info).then(|| Finding {
        evidence: taken(&neighbours, pair).into_iter().chain(held.evidence()).collect(),
        remedy: Some("memory-protection".to_owned()),
        ..Finding::new(
            RULE.id,
            held.severity(),
            format!("its tasks wait for memory {}", place(&neighbours)),
            fix(&neighbours),
        )
    })
}

fn first<'a>(neighbours: &Neighbours<'a>) -> &'a str {
    neighbours.groups.first().map_or("", |group| group.cgroup.as_str())
}

/// Whose memory is short, and who takes it.
fn place(neighbours: &Neighbours) -> String {
    let first = first(neighbours);
    match neighbours.limited {
        Some(group) => format!("that {first} takes (limit of {group})"),
        None => format!("that {first} takes (memory of the machine)"),
    }
}

fn fix(neighbours: &Neighbours) -> String {
    let first = first(neighbours);
    format!("limit {first} (memory.high), or protect the database (memory.low)")
}

fn taken(neighbours: &Neighbours, pair: &Pair) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::new(
        &evidence::TAKEN_BY_OTHERS,
        neighbours.part,
        "pgsteal and memory.current, or pgpgin of memory.stat",
    )];
    for group in neighbours.groups.iter().take(3) {
        let per_s = group.taken_pages as f64 / pair.seconds.max(f64::EPSILON);
        let taken = Evidence::new(&evidence::TAKEN_BY, per_s, "its memory.stat");
        evidence.push(taken.of(&group.cgroup));
        if let Some(stalled_s) = group.stalled_s.value() {
            let source = "its memory.pressure, some";
            let waited = Evidence::new(&evidence::WAITED_FOR_MEMORY, stalled_s.0, source);
            evidence.push(waited.of(&group.cgroup));
        }
    }
    evidence
}

fn finding(stall: &Stall, neighbours: &Neighbours, pair: &Pair) -> Says {
    stall::finding(
        RULE.id,
        stall,
        Words {
            summary: format!(
                "{} of its time short of memory {}",
                percent(stall.share.mid),
                place(neighbours)
            ),
            fix: fix(neighbours),
            evidence: taken(neighbours, pair),
            method: "time in direct reclaim, asleep on memory and waiting for disks to read again \
                     what was evicted, traced, and on CPU for that, sampled, divided by active \
                     time, x what other groups took of the memory taken below the shared limit"
                .to_owned(),
            remedy: Some("memory-protection"),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found};
    use untax_core::activity::Doing;
    use untax_core::io::{Direction, Role};
    use untax_core::pressure::GroupMemory;
    use untax_core::pressure::VmCounts;
    use untax_core::window::Other;
    use untax_core::{Finding, Seconds};

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
            read_again_pages: Reading::Present(0),
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
        assert!(findings[0].summary.contains("that /pod/backup takes (limit of /pod)"));
        let (others, own) = charged(groups, 0);
        assert!((others.unwrap() - 0.3).abs() < 1e-9, "three quarters of 0.4");
        assert!((own.unwrap() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn what_was_evicted_for_others_and_read_again_is_charged_to_them() {
        let mut groups =
            vec![mib("/pod/backup", 0, 300), mib("/pod/db", 0, 100), mib("/pod", 5, 0)];
        groups[1].read_again_pages = Reading::Present(500);
        let mut window = window(groups, 0);
        test_window::trace(&mut window, &[(Doing::OnCpu, 6.0), (Doing::Disk, 4.0)]);
        let mut read = flow(Some("postgres:7"), Role::Data, Direction::Read, 1000, 0.004);
        read.bytes = Bytes(1000 * 4096);
        window.io = io(vec![read]);
        // In percent.
        let share = |window: &Window, rule: &str| {
            let findings = found((crate::catalogue::find(rule).unwrap().evaluate)(window));
            findings.first().map(|f| (f.tax.as_ref().unwrap().share * 100.0).round() as i64)
        };
        // Half of the 0.4 is for pages read again, three quarters of that for the backup's sake.
        let shares =
            |window: &Window| ["neighbour-reclaim", "reclaim-stall"].map(|r| share(window, r));
        assert_eq!(shares(&window), [Some(15), Some(5)]);
        // 0.5 ms of the 4 ms would be waited for any disk.
        assert_eq!(share(&window, "disk-slow"), Some(18));
        // A third of the time on CPU gets pages, half of them read again.
        test_window::sample_reading(&mut window, 333);
        assert_eq!(shares(&window), [Some(23), Some(7)]);
        // Where too little was sampled to tell, it may be any part of the time on CPU.
        test_window::trace(&mut window, &[(Doing::OnCpu, 6.0), (Doing::Disk, 4.0)]);
        let tax = found(evaluate(&window)).remove(0).tax.unwrap();
        assert!(
            (tax.low / tax.share - 1.0).abs() < 1e-9 && (tax.high / tax.share - 2.5).abs() < 1e-9,
            "{tax:?}"
        );
    }

    #[test]
    fn what_was_evicted_for_others_is_not_taken_when_it_is_read_again() {
        let mut groups =
            vec![mib("/pod/backup", 0, 300), mib("/pod/db", 0, 200), mib("/pod", 5, 0)];
        groups[1].read_again_pages = Reading::Present(100 * 256);
        let part = |groups: &[GroupMemory]| charged(groups.to_vec(), 0).0.unwrap() / 0.4;
        assert!((part(&groups) - 0.75).abs() < 1e-9, "of 200 MiB 100 were taken anew");
        // A page that is taken evicts one: who takes little is not the reason for all.
        groups[0].taken_pages = 10 * 256;
        assert!((part(&groups) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn what_neighbours_compute_ends_with_them() {
        let mut window = window(vec![mib("/pod/backup", 0, 300), mib("/pod", 5, 0)], 0);
        let times = [(Doing::OnCpu, 4.0), (Doing::Contended, 4.0), (Doing::ReclaimStalled, 2.0)];
        test_window::trace(&mut window, &times);
        let gain = |window: &Window| found(evaluate(window))[0].gain.unwrap().factor;
        assert!((gain(&window) - 10.0 / 8.0).abs() < 1e-9);
        let computes = |pid, path: &str| Other {
            cgroup: Reading::Present(path.to_owned()),
            ..Other::unknown(pid, "gzip", Seconds(10.0), "not read")
        };
        window.others = vec![computes(50, "/pod/backup"), computes(51, "/elsewhere")];
        // It had half of the CPUs that the database waited for; others go on using 6 of 20 s.
        assert!((gain(&window) - 10.0 / 5.2).abs() < 1e-9);
    }

    #[test]
    fn pages_read_again_that_nobody_counted_are_a_gap_and_not_zero() {
        let mut groups =
            vec![mib("/pod/backup", 0, 300), mib("/pod/db", 0, 100), mib("/pod", 5, 0)];
        groups[1].read_again_pages = Reading::Denied("/pod/db/memory.stat".to_owned());
        let window = window(groups, 0);
        for rule in ["neighbour-reclaim", "reclaim-stall"] {
            let diagnoses = (crate::catalogue::find(rule).unwrap().evaluate)(&window);
            let gaps = test_window::gaps(diagnoses.clone());
            assert!(found(diagnoses).is_empty(), "{rule}");
            assert!(gaps.iter().any(|why| why.contains("/pod/db/memory.stat")), "{gaps:?}");
        }
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
