//! `lock-contended`: threads of the database wait for each other.

use crate::evidence;
use crate::model::lock_kind::LockKind;
use crate::model::process_starts::workers_started;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::model::without_tax;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::{Cause, Doing, Part, Spent};
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::scalability::Scalability;
use untax_core::window::Pair;
use untax_core::{Activity, Diagnosis, Evidence, EvidenceKind, Interval, Window};

pub const RULE: Rule = Rule {
    id: "lock-contended",
    summary: "threads of the database wait for locks that others of them hold",
    what: "Many threads need the same lock: on a row that everyone updates, a latch of a hot page, \
           or the kernel's own lock on a shared address space. While one thread holds the lock, \
           the others sleep, and more connections only make the queue longer. For this reason \
           single-node databases stop scaling at 32 to 64 cores.",
    method: "The tax is the traced time that threads waited for a lock of the database, as a share \
             of active time.",
    measured: "The tax is a traced share of active time. The rule counts time asleep in a futex or \
               semaphore, and in a page fault that reads nothing. Where processes serve clients, \
               the rule also counts waits that end by a signal of another process of the same \
               database (row locks of PostgreSQL). A wait counts only if the thread that ended it \
               computed meanwhile, or waited for its own client. A wait behind a thread that \
               waited for a disk, a CPU or memory counts as that thread's wait. The leader of a \
               parallel query waits for its workers in the same way, and a commit waits for a \
               synchronous standby. So PostgreSQL's own wait events at both ends of the window \
               split these waits, roughly. The rule uses wait events where PostgreSQL starts one \
               or more workers a second, or a process waits for a standby or an asynchronous read. \
               The wait between two requests of a client is no lock. Nor is the sleep of a thread \
               whose client has gone (thread_cache_size). The server shows which locks these are: \
               by the wait events of PostgreSQL's processes at both ends of the window, or by the \
               time that InnoDB waited for rows. Threads of a program of unknown model (--pid) \
               wait in futexes for locks or for work, so their waits are not judged. The universal \
               scalability law shows how the database scales: concurrent requests against requests \
               done, window after window. The law needs windows of untax watch that differ enough.",
    fix: "Spread the hot rows or pages, shorten the transactions that hold them, and limit how \
          many connections work at once (a pooler).",
    sources: &[
        "postgresql.org: 28.2.3 pg_stat_activity, wait events LWLock and Lock",
        "kernel.org: futex(2), signal of a latch",
        "N. J. Gunther: Guerrilla Capacity Planning, chapters 4 to 6 (the law)",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Database,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found =
        stall::per_database(window, RULE.id, |pair| {
            Stall::of(window, pair, |spent| stall::is_lock_wait(spent, pair)).map(|stall| {
                let stall = stall.map(|stall| without_others(stall, pair));
                let stall = stall.filter(|stall| stall.share.mid >= WORTH)?;
                let stall = without_the_queue(stall, pair);
                let mut evidence =
                    pair.activity.value().map(|a| lock_evidence(a, pair)).unwrap_or_default();
                evidence.extend(lock_part(pair).map(|part| {
                    Evidence::new(&evidence::PEER_LOCKS, part.mid, "pg_stat_activity")
                }));
                evidence.extend(scaling(window, pair).iter().flat_map(law_evidence));
                let waited_s = pair
                    .activity
                    .value()
                    .map_or(0.0, |a| a.sum(|spent| stall::is_lock_wait(spent, pair)).0);
                let kind = LockKind::of(pair, waited_s);
                let share = percent(stall.share.mid);
                Some(stall::finding(RULE.id, &stall, Words {
                summary: kind.summary(&share),
                fix: kind.fix().to_owned(),
                evidence,
                method: "time asleep in futexes, faults and waits for peers while these computed \
                         or waited for their clients, traced, divided by active time"
                    .to_owned(),
                remedy: None,
            }))
            })
        });
    let gaps = fit_gaps(window, &found);
    let unjudged = window.databases().filter_map(|pair| unjudged_gap(&pair)).flatten();
    found.into_iter().chain(gaps).chain(unjudged).collect()
}

/// Why waits in futexes of a program of unknown model are no finding, where they are worth a word.
fn unjudged_gap(pair: &Pair) -> Option<Vec<Diagnosis>> {
    let activity = pair.activity.value().filter(|_| pair.end.model == Model::Unknown)?;
    let in_futexes = |spent: &Spent| {
        spent.part(pair.end.model) == Part::Unaccounted && spent.doing != Doing::Other
    };
    let waited_s = activity.sum(in_futexes).0;
    let all_s = waited_s + activity.active(pair.end.model).0;
    (waited_s > 0.0 && waited_s >= WORTH * all_s).then(|| {
        let why = format!(
            "{waited_s:.1} s in futexes behind threads of its own cannot be told from waits for \
             work: how this program serves its clients is not known"
        );
        without_tax::unmeasured(RULE.id, Some(&pair.end.id), why)
    })
}

/// Lets end with the locks what is charged to what their holders wait for: nobody is behind these any more. Without
/// the waits nobody is woken after one, either: what that takes of CPUs may end too.
fn without_the_queue(stall: Stall, pair: &Pair) -> Stall {
    let Some(activity) = pair.activity.value() else { return stall };
    let queued = activity.share(pair.end.model, |spent| stall::is_behind_cpus(spent, pair));
    let burnt = activity.share_waking().map_or(0.0, |waking| waking.high);
    let stall = stall.with_ended_share(queued.map_or(0.0, |queued| queued.mid));
    stall.with_cheaper_work(Interval::new(0.0, 0.0, burnt))
}

/// Takes off what may be waits for workers of parallel queries, standbys, and those who read for others.
fn without_others(stall: Stall, pair: &Pair) -> Stall {
    let all = stall.share.mid;
    let is_peer =
        |spent: &Spent| spent.doing == Doing::PollPeer && stall::is_lock_wait(spent, pair);
    let peers = pair.activity.value().and_then(|activity| activity.share(pair.end.model, is_peer));
    let Some((part, peers)) = lock_part(pair).zip(peers).filter(|_| all > 0.0) else {
        return stall;
    };
    let left = part.map(|part| 1.0 - peers.mid / all * (1.0 - part));
    let share = stall.share.times(left);
    stall.with_share(share)
}

/// The part (0..1) of waits for other processes that is for locks; `None` where it is all. Of a few
/// processes that were asked twice, one more of either kind could have been met.
fn lock_part(pair: &Pair) -> Option<Interval> {
    let workers_per_s = workers_started(pair) / pair.seconds.max(f64::EPSILON);
    let seen = |name: &str| -> f64 {
        let ends = [pair.start, Some(pair.end)].into_iter().flatten();
        ends.filter_map(|database| database.counters.told(name).into_value()).sum()
    };
    let has_workers = workers_per_s >= WORTH_WORKERS_PER_S;
    let workers = if has_workers { seen("waiting_for_workers") } else { 0.0 };
    let (locks, others) = (seen("waiting_for_locks"), workers + seen("waiting_for_others"));
    let part = |locks: f64, others: f64| locks / (locks + others);
    (has_workers || others > 0.0).then(|| {
        let mid = part(locks + 0.5, others + 0.5);
        Interval::new(part(locks, others + 1.0), mid, part(locks + 1.0, others))
    })
}

/// Workers that clean up tables are started less often.
const WORTH_WORKERS_PER_S: f64 = 1.0;

/// Why those that were found have no fit of how they scale.
fn fit_gaps(window: &Window, found: &[Diagnosis]) -> Vec<Diagnosis> {
    let is_found = |pair: &Pair| {
        let id = Some(&pair.end.id);
        found.iter().any(|d| d.database.as_ref() == id && matches!(d.says, Says::Found(_)))
    };
    let pairs = window.databases().filter(is_found);
    let gap = |pair: Pair| {
        let why = format!("how it scales: {}", scaling(window, &pair).err()?);
        Some(without_tax::unmeasured(RULE.id, Some(&pair.end.id), why))
    };
    pairs.filter_map(gap).flatten().collect()
}

/// The universal scalability law over the windows of this session, or why there is none.
fn scaling(window: &Window, pair: &Pair) -> Result<Scalability, String> {
    let own = pair.load();
    let before = window.loads.iter().find(|loads| loads.database == pair.end.id);
    let mut loads = before.map(|loads| loads.each.clone()).unwrap_or_default();
    if let Some(why) = own.why() {
        return Err(why);
    }
    loads.extend(own.into_value());
    Scalability::fit(&loads)
        .map_err(|why| format!("{why}; untax watch sees one load after the other"))
}

/// The fitted law as evidence.
fn law_evidence(scaling: &Scalability) -> Vec<Evidence> {
    let source = "universal scalability law over the windows watched";
    let bounded = |kind: &EvidenceKind, of: Interval| {
        let bounds = format!("({:.4} … {:.4})", of.low, of.high);
        Evidence::new(kind, of.mid, source).noted(&bounds)
    };
    let mut evidence = vec![
        bounded(&evidence::CONTENTION, scaling.contention),
        bounded(&evidence::COHERENCY, scaling.coherency),
    ];
    evidence.extend(scaling.peak.map(|peak| Evidence::new(&evidence::PEAK, peak, source)));
    evidence
}

/// Which locks: the parts, in seconds.
fn lock_evidence(activity: &Activity, pair: &Pair) -> Vec<Evidence> {
    let part = |doing| {
        let counts = |s: &Spent| s.doing == doing && stall::is_lock_wait(s, pair);
        activity.sum(counts).0
    };
    let behind = |cause| {
        let counts = |s: &Spent| s.behind == Some(cause) && stall::is_lock_wait(s, pair);
        activity.sum(counts).0
    };
    let holders =
        [(&evidence::HOLDERS_COMPUTE, Cause::Cpu), (&evidence::HOLDERS_IDLE, Cause::Idle)]
            .map(|(kind, cause)| (kind, behind(cause)));
    [
        (&evidence::LATCHES, Doing::Futex),
        (&evidence::PEERS, Doing::PollPeer),
        (&evidence::MEMORY_MAP, Doing::Fault),
    ]
    .map(|(kind, doing)| (kind, part(doing)))
    .into_iter()
    .chain(holders)
    .map(|(kind, time_s)| Evidence::new(kind, time_s, "scheduler's events"))
    .filter(
        |evidence| !matches!(evidence.value, untax_core::evidence::Value::Number(s) if s <= 0.0),
    )
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found};
    use untax_core::Reading;
    use untax_core::scalability::Load;
    use untax_core::window::Loads;

    #[test]
    fn leaders_that_wait_for_workers_wait_for_no_lock() {
        let mut window = test_window::postgres();
        test_window::trace(
            &mut window,
            &[(Doing::OnCpu, 5.0), (Doing::Futex, 1.0), (Doing::PollPeer, 4.0)],
        );
        let mut share = |started, locks, workers, others| {
            if let Reading::Present(activities) = &mut window.activity {
                activities[0].started = started;
            }
            for snapshot in [&mut window.start, &mut window.end] {
                let told = [
                    ("sessions", 3),
                    ("waiting_for_locks", locks),
                    ("waiting_for_workers", workers),
                    ("waiting_for_others", others),
                ];
                let told = told.map(|(name, count)| (name.to_owned(), count));
                snapshot.databases[0].counters.told = Reading::Present(told.into());
            }
            let findings = found(evaluate(&window));
            let tax = findings[0].tax.clone().unwrap();
            [tax.low, tax.share, tax.high]
        };
        assert!(
            share(9, 0, 3, 0).iter().all(|share| (share - 0.5).abs() < 1e-9),
            "hardly a worker"
        );
        let workers = share(400, 0, 3, 0);
        assert!((workers[0] - 0.1).abs() < 1e-9 && workers[1] < 0.15, "{workers:?}");
        let standby = share(9, 0, 3, 3);
        assert!((standby[0] - 0.1).abs() < 1e-9 && standby[1] < 0.15, "{standby:?}");
        let both = share(400, 2, 2, 0);
        assert!((both[1] - 0.3).abs() < 1e-9 && both[0] < 0.28 && both[2] > 0.32, "{both:?}");
    }

    #[test]
    fn a_pool_of_threads_of_unknown_model_waits_for_no_lock() {
        let said = |times: &[(Doing, f64)]| {
            let mut window = test_window::postgres();
            test_window::trace(&mut window, times);
            for snapshot in [&mut window.start, &mut window.end] {
                snapshot.databases[0].model = Model::Unknown;
            }
            evaluate(&window)
        };
        let behind_work = said(&[(Doing::OnCpu, 0.6), (Doing::Futex, 200.0)]);
        assert_eq!(test_window::gaps(behind_work.clone()).len(), 1, "{behind_work:?}");
        assert!(found(behind_work).is_empty());
        let memory_map = said(&[(Doing::OnCpu, 5.0), (Doing::Fault, 5.0)]);
        assert_eq!(found(memory_map).len(), 1, "the kernel's own lock is one");
    }

    #[test]
    fn what_holders_wait_for_is_no_lock() {
        let share = |behind: &[(Cause, f64)]| {
            let mut window = test_window::postgres();
            test_window::trace_behind(&mut window, &[(Doing::OnCpu, 4.0)], behind);
            found(evaluate(&window)).first().map(|found| found.tax.clone().unwrap().share)
        };
        assert_eq!(share(&[(Cause::RunQueue, 8.0), (Cause::Disk, 8.0)]), None);
        let of_both = share(&[(Cause::Cpu, 4.0), (Cause::Throttled, 6.0), (Cause::Idle, 2.0)]);
        assert!((of_both.unwrap() - 6.0 / 16.0).abs() < 1e-9, "{of_both:?}");
    }

    #[test]
    fn the_server_says_which_locks_these_are() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Futex, 5.0)]);
        let mut summary = |told: &[(&str, u64)]| {
            for snapshot in [&mut window.start, &mut window.end] {
                let told = told.iter().map(|(name, count)| ((*name).to_owned(), *count));
                snapshot.databases[0].counters.told = Reading::Present(told.collect());
            }
            found(evaluate(&window)).remove(0).summary
        };
        assert!(summary(&[]).contains("locks of its own"));
        let rows = ("waiting_for_locks", 3);
        assert!(summary(&[rows, ("waiting_for_log", 1)]).contains("rows"));
        assert!(summary(&[rows, ("waiting_for_log", 9)]).contains("queue for the log"));
    }

    #[test]
    fn latches_and_row_locks_add_up() {
        let mut window = test_window::postgres();
        test_window::trace(
            &mut window,
            &[
                (Doing::OnCpu, 5.0),
                (Doing::Futex, 1.0),
                (Doing::PollPeer, 4.0),
                (Doing::Poll, 50.0),
            ],
        );
        let findings = found(evaluate(&window));
        assert!((findings[0].tax.as_ref().unwrap().share - 0.5).abs() < 1e-9);
        assert_eq!(findings[0].evidence.len(), 3, "two kinds of waits, behind one kind of holders");
    }

    /// Half of its time in row locks, and the count of transactions.
    fn locked() -> Window {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::PollPeer, 5.0)]);
        for (snapshot, count) in [(&mut window.start, 0), (&mut window.end, 1000)] {
            let told = [("transactions".to_owned(), count)].into();
            snapshot.databases[0].counters.told = Reading::Present(told);
        }
        window
    }

    #[test]
    fn one_load_carries_no_fit_and_that_is_said() {
        let said = evaluate(&locked());
        assert_eq!(said.len(), 2);
        let Says::Unmeasured(gap) = &said[1].says else { panic!("{said:?}") };
        assert!(gap.why.starts_with("how it scales: 6 loads or more"), "{}", gap.why);
    }

    #[test]
    fn many_loads_carry_one() {
        let mut window = locked();
        let load =
            |at_once: f64| Load { at_once, per_s: 100.0 * at_once / (1.0 + 0.2 * (at_once - 1.0)) };
        let each = (0..10).map(|i| load(1.4_f64.powi(i))).collect();
        window.loads = vec![Loads { database: "postgres:7".to_owned(), each }];
        let said = evaluate(&window);
        let findings = found(said);
        let has = |name: &str| findings[0].evidence.iter().any(|e| e.name.starts_with(name));
        assert!(has("contention") && has("coherency"), "{:?}", findings[0].evidence);
    }

    #[test]
    fn waiting_for_clients_is_no_lock() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Poll, 50.0)]);
        assert!(found(evaluate(&window)).is_empty());
        window.activity = Reading::Denied("root".to_owned());
        assert_eq!(evaluate(&window).len(), 1, "a gap is said");
    }
}
