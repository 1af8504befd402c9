//! `lock-contended`: threads of the database wait for each other.

use crate::catalogue::Rule;
use crate::stall::{self, Stall, WORTH, Words, percent};
use untax_core::activity::{Doing, Part};
use untax_core::window::Pair;
use untax_core::{Activity, Diagnosis, Evidence, Window};

pub const RULE: Rule = Rule {
    id: "lock-contended",
    summary: "threads of the database wait for locks that others of them hold",
    what: "Rows that everyone updates, latches of hot pages, the kernel's own lock on a shared \
           address space: while one holds it, the others sleep, and more connections only make \
           the queue longer. Single-node databases stop scaling at 32 to 64 cores for this.",
    measured: "Traced: time asleep in a futex or semaphore, in a page fault that reads nothing, \
               and, where processes serve clients, in waits that end by a signal of another \
               process of the same database (row locks of PostgreSQL), over active time. What \
               clients wait for between their requests is no lock.",
    fix: "Spread the hot rows or pages, shorten the transactions that hold them, and limit how \
          many connections work at once (a pooler).",
    sources: &[
        "postgresql.org: 28.2.3 pg_stat_activity, wait events LWLock and Lock",
        "kernel.org: futex(2), signal of a latch",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads: 1.5 % of one CPU at most",
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        let model = pair.end.model;
        Stall::of(window, pair, |spent| spent.part(model) == Part::Lock).map(|stall| {
            let stall = stall.filter(|stall| stall.share.mid >= WORTH)?;
            Some(stall::finding(RULE.id, &stall, Words {
                summary: format!(
                    "{} of its time waiting for locks of its own",
                    percent(stall.share.mid)
                ),
                fix: "shorten what holds the hot rows or pages; let fewer connections work at once"
                    .to_owned(),
                evidence: pair.activity.value().map(|a| evidence(a, pair)).unwrap_or_default(),
                method: "time asleep in futexes, faults and waits for peers, traced, over active \
                         time"
                    .to_owned(),
                remedy: None,
            }))
        })
    })
}

/// Which locks: the parts, in seconds.
fn evidence(activity: &Activity, pair: &Pair) -> Vec<Evidence> {
    let part = |doing| {
        let counts = |s: &untax_core::activity::Spent| {
            s.doing == doing && s.part(pair.end.model) == Part::Lock
        };
        activity.sum(counts).0
    };
    [
        ("latches (futex)", Doing::Futex),
        ("waits for peers (row locks)", Doing::PollPeer),
        ("memory map of the process", Doing::Fault),
    ]
    .into_iter()
    .map(|(name, doing)| Evidence::new(name, part(doing), "s", "scheduler's events"))
    .filter(|evidence| !matches!(evidence.value, untax_core::finding::Value::Number(s) if s <= 0.0))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found};
    use untax_core::Reading;

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
        assert_eq!(findings[0].evidence.len(), 2);
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
