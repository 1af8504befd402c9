//! `too-many-connections`: many more connections work at once than there are CPUs.

use crate::catalogue::Rule;
use crate::stall;
use untax_core::activity::{Doing, Polling, Spent};
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Activity, Diagnosis, Evidence, Finding, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "too-many-connections",
    summary: "many more connections want a CPU at once than there are CPUs",
    what: "A CPU runs one at a time; the rest wait in its queue, holding snapshots, locks and \
           memory meanwhile. Latency grows with the queue, throughput does not, and every switch \
           and every process's own page tables cost a little more. A pool of a few connections \
           for each CPU does the same work with a short queue.",
    measured: "How many threads that serve clients were on a CPU or waiting for one on average \
               (traced), against the CPUs. What the queue costs is latency, not time of its own: \
               it has no tax. What its page tables and faults cost is small-pages and \
               page-table-bloat; what a pool brings, a trial shows.",
    fix: "A pooler (PgBouncer in transaction mode, thread_handling=pool-of-threads, ProxySQL) of \
          two to four connections for each CPU.",
    sources: &[
        "pgbouncer.org: config, pool_mode and default_pool_size",
        "mariadb.com: thread pool",
        "github.com/brettwooldridge/HikariCP: about pool sizing",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads: 1.5 % of one CPU at most",
    evaluate,
};

/// Pools are sized at two to four connections for each CPU; at four times that, nobody sized
/// them.
const WORTH_EACH_CPU: f64 = 16.0;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let cpus = window.end.host.cpu.as_ref().map(|cpu| f64::from(cpu.logical));
    stall::per_database(window, RULE.id, |pair| {
        if !matches!(pair.end.model, Model::Process | Model::Thread) {
            return Reading::Present(None);
        }
        let traced = pair.activity.clone();
        traced.and_then(|activity| cpus.clone().map(|cpus| found(pair, activity, cpus)))
    })
}

fn found(pair: &Pair, activity: &Activity, cpus: f64) -> Option<Says> {
    let wants_cpu = |spent: &Spent| {
        spent.polling != Polling::Never && matches!(spent.doing, Doing::OnCpu | Doing::Contended)
    };
    let at_once = activity.sum(wants_cpu).0 / activity.window_s.0.max(f64::EPSILON);
    if at_once < WORTH_EACH_CPU * cpus {
        return None;
    }
    let mut evidence = vec![
        Evidence::new("wanted a CPU at once", at_once, "threads", "scheduler's events, mean"),
        Evidence::new("CPUs", cpus, "count", "/proc/cpuinfo"),
    ];
    if let Some(connections) = pair.end.connections.value() {
        evidence.push(Evidence::new("connections", u64::from(*connections), "count", "the server"));
    }
    Some(Says::Found(Finding {
        rule: RULE.id.to_owned(),
        severity: Severity::Medium,
        summary: format!("{at_once:.0} connections want one of {cpus:.0} CPUs at any moment"),
        fix: format!("a pooler with {:.0} to {:.0} connections", 2.0 * cpus, 4.0 * cpus),
        evidence,
        tax: None,
        gain: None,
        remedy: Some("pooler".to_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;

    fn queue(contended_s: f64) -> Vec<Finding> {
        let mut window = test_window::postgres();
        window.end.host.cpu = Reading::Present(test_window::cpus(2));
        test_window::trace(&mut window, &[(Doing::OnCpu, 15.0), (Doing::Contended, contended_s)]);
        test_window::found(evaluate(&window))
    }

    #[test]
    fn a_long_queue_is_found_and_a_short_one_is_not() {
        let findings = queue(2000.0);
        assert!(findings[0].summary.starts_with("202 connections want one of 2 CPUs"));
        assert!(findings[0].fix.contains("4 to 8"));
        assert!(queue(65.0).is_empty());
    }
}
