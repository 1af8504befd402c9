//! `reclaim-stall`: the database's threads free memory, or wait for it.

use crate::evidence;
use crate::model::held_up::{self, HeldUp, is_untraced};
use crate::model::memory_limits;
use crate::model::memory_limits::neighbours;
use crate::model::memory_shortage;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::database::{Cgroup, MemoryGroup};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, EvidenceKind, Finding, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "reclaim-stall",
    summary: "threads of the database free memory themselves, or wait until there is some",
    what: "When a control group is at its memory limit, or the machine is out of free pages, a \
           thread that allocates has to free pages first. Its own query stops for that. Pages that \
           are evicted too early must be read again, and memory.high puts threads to sleep on \
           purpose. A shortage of memory goes on long before anything is killed, and only latency \
           shows it.",
    method: "The tax is the traced time that threads spent freeing memory or waiting for it, as a \
             share of active time.",
    measured: "The tax is a traced share of active time. It has three basic parts. The first part \
               is time on CPU inside direct reclaim (vmscan tracepoints), with its part of waiting \
               for a CPU. The second part is time asleep while the kernel had marked the thread as \
               stalled on memory (memory pressure, PSI, uses the same mark). The third part is \
               waiting for a lock while a thread that may hold it was in reclaim or stalled. Where \
               a limit was met, three more parts count. First, the database read again what had \
               been evicted shortly before (workingset_refault_file of its group, as a part of \
               what was read). The time that threads wait for disk reads is multiplied by this \
               part. The same holds for time on CPU that gets file pages not in the page cache, or \
               that is interrupted as requests are done. Stacks are sampled for this, at most 997 \
               per second on each CPU. Where there were too few samples, the interval allows any \
               part. Second, threads waited inside file calls behind threads that reclaim with the \
               file's lock. Third, threads waited for CPUs that kernel workers (kworker, \
               ksoftirqd) had meanwhile to move these pages. The workers' time counts in \
               proportion: pages read again, and as many pages written to make room, over all \
               pages that the database's devices moved. Memory that other control groups made the \
               database free or read again is charged by neighbour-reclaim. Without tracing, the \
               rule finds a limit that was met, and its tax is unmeasured. Without tracing, the \
               severity follows from PSI (full): the share of the window in which every task of \
               the group with work to do waited for memory.",
    fix: "Raise the memory limit, or lower the need: shared_buffers, innodb_buffer_pool_size, \
          maxmemory, work_mem. Keep large readers of files in another group.",
    sources: &[
        "kernel.org: admin-guide/cgroup-v2, memory.high, memory.max",
        "kernel.org: accounting/psi",
    ],
    privilege: "none; root (CAP_BPF and CAP_PERFMON) for its tax",
    minimum_kernel: "4.20 (PSI); 5.15 (bpf_task_pt_regs) for its tax",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| {
        if is_untraced(pair)
            && let Some(finding) = untraced(window, pair)
        {
            return Reading::Present(Some(Says::Found(finding)));
        }
        memory_shortage::shortage_stall(window, pair).and_then(|stall| {
            let Some(stall) = stall.filter(|stall| stall.share.mid >= WORTH) else {
                return Reading::Present(None);
            };
            // What others made it free is charged to them.
            neighbours(window, pair).map(|others| {
                let stall = stall.times(1.0 - others.map_or(0.0, |others| others.part));
                (stall.share.mid >= WORTH).then(|| finding(window, &stall, pair))
            })
        })
    });
    held_up::with_reasons(window, found)
}

/// What the kernel counts, where nothing is traced: tasks that waited for memory at a limit that was met.
fn untraced(window: &Window, pair: &Pair) -> Option<Finding> {
    let limiting = memory_limits::limiting_group(window, pair).into_value()??;
    let others = neighbours(window, pair).into_value()?.map_or(0.0, |others| others.part);
    let held = HeldUp::for_memory(window, pair).times(1.0 - others);
    let place = Place::of(window, pair);
    (held.severity() > Severity::Info).then(|| Finding {
        evidence: place.evidence.into_iter().chain(held.evidence()).collect(),
        remedy: place.remedy.map(str::to_owned),
        ..Finding::new(
            RULE.id,
            held.severity(),
            format!("its tasks wait for memory at the limit of {limiting}"),
            place.fix,
        )
    })
}

/// Where memory was short, and what helps there.
struct Place {
    name: String,
    fix: &'static str,
    remedy: Option<&'static str>,
    evidence: Vec<Evidence>,
}

impl Place {
    fn of(window: &Window, pair: &Pair) -> Self {
        let limiting = memory_limits::limiting_group(window, pair).into_value();
        let (name, fix, remedy) = match limiting {
            Some(Some(group)) => {
                let fix = "raise its memory limit, or give the database less memory";
                let cgroup = pair.end.cgroup.value();
                let tightest = cgroup.and_then(Cgroup::tightest_memory);
                // It raises the lowest limit.
                let is_tightest = tightest.is_none_or(|tightest| tightest.cgroup == group);
                (format!(" in its group {group}"), fix, is_tightest.then_some("memory-limit"))
            }
            Some(None) => (" on this machine".to_owned(), FIX_OF_MACHINE, None),
            None => (String::new(), FIX_OF_ANY, None),
        };
        let group = limiting.flatten().and_then(|path| {
            let groups = pair.end.cgroup.value()?.memory.value()?;
            groups.iter().find(|group| group.cgroup == path)
        });
        Self { name, fix, remedy, evidence: group.map(evidence).unwrap_or_default() }
    }
}

fn finding(window: &Window, stall: &Stall, pair: &Pair) -> Says {
    let Place { name, fix, remedy, evidence } = Place::of(window, pair);
    stall::finding(
        RULE.id,
        stall,
        Words {
            summary: format!(
                "{} of its time freeing memory, waiting for it or reading again{name}",
                percent(stall.share.mid)
            ),
            fix: fix.to_owned(),
            evidence,
            method: "time in direct reclaim, asleep on memory and waiting for disks to read again \
                     what was evicted, traced, and on CPU for that, sampled, divided by active \
                     time"
                .to_owned(),
            remedy,
        },
    )
}

const FIX_OF_MACHINE: &str = "give the machine more memory, or its programs less";

const FIX_OF_ANY: &str = "raise the limit that was met, or give the database less memory";

fn evidence(group: &MemoryGroup) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    let mut add = |kind: &EvidenceKind, bytes: &Reading<untax_core::Bytes>, source: &str| {
        if let Some(bytes) = bytes.value() {
            evidence.push(Evidence::new(kind, bytes.0, source));
        }
    };
    add(&evidence::MEMORY_LIMIT, &group.max_bytes, "memory.max or memory.limit_in_bytes");
    add(&evidence::MEMORY_HIGH, &group.high_bytes, "memory.high");
    add(&evidence::MEMORY_CHARGED, &group.usage_bytes, "memory.current or memory.usage_in_bytes");
    add(&evidence::MEMORY_CACHE, &group.file_bytes, "memory.stat");
    if let Some(count) = group.at_limit.value() {
        evidence.push(Evidence::new(&evidence::AT_LIMIT, *count, "memory.events or failcnt"));
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found};
    use untax_core::activity::{Cause, Doing};
    use untax_core::io::{Direction, Role};
    use untax_core::pressure::GroupMemory;
    use untax_core::{Bytes, Seconds};

    #[test]
    fn reclaim_on_cpu_and_asleep_count_alike() {
        let mut window = test_window::postgres();
        test_window::trace(
            &mut window,
            &[(Doing::OnCpu, 6.0), (Doing::ReclaimOnCpu, 1.0), (Doing::ReclaimStalled, 3.0)],
        );
        let findings = found(evaluate(&window));
        assert!((findings[0].tax.as_ref().unwrap().share - 0.4).abs() < 1e-9);
        let own = [(Doing::OnCpu, 6.0), (Doing::ReclaimStalled, 1.0)];
        test_window::trace_behind(&mut window, &own, &[(Cause::Memory, 3.0)]);
        let findings = found(evaluate(&window));
        assert!(
            (findings[0].tax.as_ref().unwrap().share - 0.4).abs() < 1e-9,
            "a lock held meanwhile"
        );
        test_window::trace(&mut window, &[(Doing::OnCpu, 6.0)]);
        assert!(found(evaluate(&window)).is_empty());
    }

    #[test]
    fn only_a_limit_that_was_met_is_to_be_raised() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 6.0), (Doing::ReclaimStalled, 4.0)]);
        let unknown = found(evaluate(&window)).remove(0);
        assert!(unknown.remedy.is_none() && unknown.summary.ends_with("reading again"));
        let limit = test_window::limit("/pod/db", Bytes(1), Bytes(0));
        window.end.databases[0].cgroup = test_window::cgroup(vec![limit]);
        let mut with_limit = |at_limit| {
            window.groups = Reading::Present(vec![GroupMemory {
                cgroup: "/pod".to_owned(),
                at_limit,
                taken_pages: 1,
                pages_each: 1.0,
                read_again_pages: Reading::Present(0),
                stalled_s: Reading::Absent("v1".to_owned()),
            }]);
            found(evaluate(&window)).remove(0)
        };
        let met = with_limit(3);
        assert!(met.remedy.is_some() && met.summary.ends_with("in its group /pod"));
        let short = with_limit(0);
        assert!(short.remedy.is_none() && short.summary.ends_with("on this machine"));
        assert!(!short.fix.contains("limit"));
    }

    /// So many of a thousand samples in the end of requests.
    fn sample_completing(window: &mut Window, count: Option<u64>) {
        let Reading::Present(activities) = &mut window.activity else { panic!("it is traced") };
        let sampled = activities[0].slices[0].sampled.as_mut().expect("it was sampled");
        sampled.completing = count;
    }

    #[test]
    fn workers_that_read_again_and_write_for_it_have_the_cpus_meanwhile() {
        let mut window = test_window::postgres();
        test_window::trace(
            &mut window,
            &[(Doing::OnCpu, 6.0), (Doing::Contended, 10.0), (Doing::ReclaimStalled, 4.0)],
        );
        let limit = test_window::limit("/db", Bytes(1), Bytes(0));
        window.end.databases[0].cgroup = test_window::cgroup(vec![limit]);
        window.groups = Reading::Present(vec![GroupMemory {
            cgroup: "/db".to_owned(),
            at_limit: 3,
            taken_pages: 1,
            pages_each: 1.0,
            read_again_pages: Reading::Present(1000),
            stalled_s: Reading::Absent("v1".to_owned()),
        }]);
        // Twice as many pages are written as are read again, a quarter of all by somebody else.
        let pages = |of, direction, count| {
            let mut flow = flow(of, Role::Data, direction, count, 0.0);
            flow.bytes = Bytes(count * 4096);
            flow
        };
        let mine = Some("postgres:7");
        let flows = vec![
            pages(mine, Direction::Read, 1000),
            pages(mine, Direction::Write, 2000),
            pages(None, Direction::Write, 1000),
        ];
        window.io = io(flows);
        test_window::sample_reading(&mut window, 0);
        let tax = |window: &Window| found(evaluate(window))[0].tax.clone().unwrap();
        assert!((tax(&window).share - 0.2).abs() < 1e-9, "no worker ran");
        sample_completing(&mut window, None);
        let most = 0.05 * (6.0 + 10.0 * 6.0 / 20.0) / 20.0;
        assert!((tax(&window).high - (0.2 + most)).abs() < 1e-9, "interrupts were not sampled");
        sample_completing(&mut window, Some(0));
        // Half of 4 of the 14 s that others than its two threads had the machine's CPUs: a seventh of what
        // these waited for them.
        window.kernel_workers_s = Some(Seconds(4.0));
        assert!((tax(&window).share - (0.2 + 0.5 / 7.0)).abs() < 1e-9);
        assert!((tax(&window).low - (0.2 + 0.25 / 7.0)).abs() < 1e-9, "it may be written anyway");
        // A fifth of its own 6 s it was interrupted, half of that for pages that are moved again.
        window.kernel_workers_s = Some(Seconds(0.0));
        sample_completing(&mut window, Some(200));
        let own = 0.1 * (6.0 + 10.0 * 6.0 / 20.0) / 20.0;
        assert!((tax(&window).share - (0.2 + own)).abs() < 1e-9, "{:?}", tax(&window));
        sample_completing(&mut window, Some(0));
        // Where they are not seen it is not nothing: of 20 s the database took 6, others none.
        window.kernel_workers_s = None;
        assert!((tax(&window).share - 0.2).abs() < 1e-9);
        assert!((tax(&window).high - (0.2 + 0.5 / 2.0)).abs() < 1e-9);
    }
}
