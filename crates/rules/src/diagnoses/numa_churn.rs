//! `numa-churn`: the kernel moves the database's pages between NUMA nodes.

use crate::evidence;
use crate::model::without_tax::{self, Words};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "numa-churn",
    summary: "NUMA balancing keeps moving pages between nodes",
    what: "With kernel.numa_balancing, the kernel removes pages from the page tables now and then. \
           The faults that follow show which node touches each page. The kernel moves pages that \
           another node touches more. Threads that stay on one node gain by this. Memory that \
           threads of all nodes share, such as a buffer pool, has no right place: it is faulted \
           and copied for ever.",
    method: "The rule counts the pages that NUMA balancing moved in the window; no tax is \
             measured.",
    measured: "The rule reads numa_hint_faults and numa_pages_migrated of the database's own \
               control group (memory.stat, since 6.13). Otherwise the rule reads the counters of \
               the whole machine (/proc/vmstat), and the finding is about the host. The rule finds \
               250 or more pages moved, or 1000 or more such faults, each second. The kernel does \
               not count the time that these take from the database. The calibration covers faults \
               that fill a page, not these faults, so the tax is unmeasured. Tasks that a \
               sched_ext scheduler runs are not scanned and do not count here.",
    fix: "Bind the database to one node, or interleave its memory, and switch the balancing off: \
          sysctl kernel.numa_balancing=0.",
    sources: &[
        "kernel.org: admin-guide/sysctl/kernel, numa_balancing",
        "kernel.org: admin-guide/cgroup-v2, memory.stat, numa_pages_migrated",
    ],
    privilege: "none",
    minimum_kernel: "3.8; of a single database 6.13 (cgroup v2)",
    cost: "lines of two files that are read anyway",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// 1 MiB a second on base pages: less is threads that settle.
const WORTH_MOVED_PER_S: f64 = 250.0;
const WORTH_FAULTS_PER_S: f64 = 1000.0;

/// 100 MiB a second.
const MUCH_MOVED_PER_S: f64 = 25_000.0;

/// What was counted each second.
struct Rates {
    faults_per_s: f64,
    moved_per_s: f64,
    source: &'static str,
}

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    match &window.end.host.numa {
        Reading::Present(nodes) if nodes.len() > 1 => {}
        Reading::Present(_) | Reading::Absent(_) => return Vec::new(),
        gap => return without_tax::unmeasured(RULE.id, None, gap.why().unwrap_or_default()),
    }
    let of_databases: Vec<(Pair, Reading<Rates>)> =
        window.databases().map(|pair| (pair.clone(), of_database(&pair))).collect();
    // Where one of them has no counts of its own, those of the machine say what they can.
    let counted = of_databases.iter().all(|(_, rates)| rates.is_present());
    let mut all: Vec<Diagnosis> = of_databases
        .into_iter()
        .filter_map(|(pair, rates)| Some(finding_and_gap(Some(&pair.end.id), &rates.into_value()?)))
        .flatten()
        .collect();
    if !counted {
        let machine = of_machine(window);
        all.extend(match &machine {
            Reading::Present(rates) => finding_and_gap(None, rates),
            gap => without_tax::unmeasured(RULE.id, None, gap.why().unwrap_or_default()),
        });
    }
    all
}

fn of_database(pair: &Pair) -> Reading<Rates> {
    let count = |read: fn(&untax_core::placement::Balancing) -> u64| {
        pair.growth("NUMA balancing", |database| {
            let placement = database.placement.as_ref();
            placement.and_then(|p| p.balancing.as_ref().map(|b| read(b) as f64))
        })
    };
    count(|b| b.hint_faults).and_then(|faults| {
        count(|b| b.pages_migrated).map(|moved| Rates {
            faults_per_s: faults / pair.seconds,
            moved_per_s: moved / pair.seconds,
            source: "memory.stat of its control group",
        })
    })
}

fn of_machine(window: &Window) -> Reading<Rates> {
    if window.seconds() <= 0.0 {
        return Reading::Absent("the check had no window; use --window 10s".to_owned());
    }
    let (start, end) = (&window.start.host.vm_counts, &window.end.host.vm_counts);
    let grown = |read: fn(&untax_core::pressure::VmCounts) -> Reading<u64>| {
        let count =
            |counts: &Reading<untax_core::pressure::VmCounts>| counts.as_ref().and_then(read);
        count(end).and_then(|end| {
            count(start).map(|start| end.saturating_sub(start) as f64 / window.seconds())
        })
    };
    grown(|counts| counts.numa_hint_faults.clone()).and_then(|faults_per_s| {
        grown(|counts| counts.numa_pages_migrated.clone()).map(|moved_per_s| Rates {
            faults_per_s,
            moved_per_s,
            source: "/proc/vmstat, whole machine",
        })
    })
}

fn finding_and_gap(database: Option<&str>, rates: &Rates) -> Vec<Diagnosis> {
    let Rates { faults_per_s, moved_per_s, source } = *rates;
    if moved_per_s < WORTH_MOVED_PER_S && faults_per_s < WORTH_FAULTS_PER_S {
        return Vec::new();
    }
    let severity = if moved_per_s < MUCH_MOVED_PER_S { Severity::Low } else { Severity::Medium };
    let words = Words {
        severity,
        summary: format!(
            "NUMA balancing moves {moved_per_s:.0} pages and makes {faults_per_s:.0} faults each \
             second"
        ),
        fix: "bind the database to one node or interleave it; sysctl kernel.numa_balancing=0"
            .to_owned(),
        evidence: vec![
            Evidence::new(&evidence::NUMA_MOVED, moved_per_s, source),
            Evidence::new(&evidence::NUMA_FAULTS, faults_per_s, source),
        ],
        gain: None,
        remedy: Some("numa-balancing"),
        why: "the kernel counts these faults and copies, not their time",
    };
    without_tax::finding_and_gap(RULE.id, database, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::Finding;
    use untax_core::finding::Says;
    use untax_core::placement::{Balancing, Placement};
    use untax_core::pressure::VmCounts;

    fn window(own: Option<u64>, machine: u64) -> Window {
        let mut window = test_window::postgres();
        window.end.host.numa = Reading::Present(test_window::two_nodes());
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 10)] {
            snapshot.host.vm_counts = Reading::Present(VmCounts {
                allocation_stalls: Reading::Present(0),
                numa_hint_faults: Reading::Present(5 + by * machine),
                numa_hint_faults_local: Reading::Present(0),
                numa_pages_migrated: Reading::Present(3 + by * machine),
            });
            let balancing =
                |per_s| Balancing { hint_faults: by * per_s, pages_migrated: 1 + by * per_s };
            snapshot.databases[0].placement = Reading::Present(Placement {
                memory: Reading::Absent("not read".to_owned()),
                source: String::new(),
                tasks: Vec::new(),
                balancing: own.map_or(Reading::Absent("v1".to_owned()), |per_s| {
                    Reading::Present(balancing(per_s))
                }),
            });
        }
        window
    }

    fn found(own: Option<u64>, machine: u64) -> Vec<(Option<String>, Finding)> {
        let finding = |diagnosis: Diagnosis| match diagnosis.says {
            Says::Found(finding) => Some((diagnosis.database, finding)),
            Says::Unmeasured(_) => None,
        };
        evaluate(&window(own, machine)).into_iter().filter_map(finding).collect()
    }

    #[test]
    fn its_own_group_tells_of_the_database_and_the_machine_of_itself() {
        let own = found(Some(300), 90_000);
        assert_eq!(own.len(), 1, "what others move is not its");
        assert_eq!(own[0].0.as_deref(), Some("postgres:7"));
        assert!(own[0].1.summary.contains("300 pages"), "{}", own[0].1.summary);
        let machine = found(None, 90_000);
        assert_eq!((machine.len(), &machine[0].0), (1, &None));
        assert_eq!(machine[0].1.severity, Severity::Medium);
    }

    #[test]
    fn settling_and_single_nodes_are_no_churn() {
        assert!(found(Some(100), 90_000).is_empty());
        assert!(found(None, 100).is_empty());
        let mut single = window(None, 90_000);
        single.end.host.numa = Reading::Present(test_window::two_nodes()[..1].to_vec());
        assert!(evaluate(&single).is_empty());
    }
}
