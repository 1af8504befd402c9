//! `short-connections`: clients connect anew for a few requests.

use crate::evidence;
use crate::model::cold_caches::catalog_share;
use crate::model::connections::{Counts, cost, counts, is_unsampled};
use crate::model::process_starts::{serving_part, started_per_s};
use crate::model::stall::{self, Stall, Words, percent};
use crate::model::without_tax;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::MANY_CONNECTIONS_PER_S;
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "short-connections",
    summary: "clients connect anew for a few requests, and a connection costs more than these \
              requests",
    what: "A connection is expensive: it takes a new server process or thread, authentication, \
           caches to fill again, and page tables to build and free. A client that connects for \
           every request pays all of it each time, and the database does little else.",
    method: "The tax is the traced time of processes or threads before their first request and \
             after their last one, as a share of active time.",
    measured: "The tax is a traced share of active time. The rule counts the time on a CPU of \
               processes that started in the window, or of threads that began to serve a client in \
               it. The time counts until these waited for their first request, and after their \
               last one. The rule also counts the time of the main process while it started them, \
               plus the same share of all waiting for a CPU. The data that processes and threads \
               send and receive shows their requests (kernel 6.3 and later; of processes once more \
               than twenty start a second). A thread does not wait for a request that has already \
               arrived. On older kernels, the tax is unmeasured where a thread serves several \
               requests on a connection; where processes serve clients, the upper bound is all of \
               the time. A PostgreSQL that counts its sessions (14 or later) starts processes for \
               parallel queries too; these are left out in proportion. The first three requests of \
               a thread's new client count for three tenths, because caches are colder (MariaDB in \
               the lab). The lower bound leaves them out. A new process also fills its caches. Of \
               PostgreSQL's first four requests, a part counts: accesses to catalogs over all \
               accesses to blocks, as if later requests made none. This part is known where one \
               database has nearly all accesses; elsewhere the upper bound takes all four \
               requests. The lower bound leaves the part out. Clients on this machine are assumed \
               to spend the same share of their CPU time on connecting. For engines that serve all \
               clients in one thread, the rule uses their own counts of connections and requests. \
               The rule counts time on CPU in system calls that begin, set up and end connections. \
               Of calls that read from clients and wait for them, the rule counts the part for \
               beginnings and ends of connections (at most 997 samples per second on each CPU). \
               The rule also counts, for each connection, as much of the engine's own time as four \
               commands take. This number is an assumption, from none to seven, because nothing \
               measures it. For clients on this machine, only the system calls are assumed to end \
               then.",
    fix: "Keep connections open: a pool in the application, or a pooler beside the database \
          (PgBouncer, ProxySQL).",
    sources: &[
        "postgresql.org: 52.1 pg_stat_database, sessions",
        "pgbouncer.org: features, connection pooling",
        "mariadb.com: thread_cache_size; redis.io: INFO, total_connections_received",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON) for its tax",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Database,
    evaluate,
};

/// An application that connects for every tenth request has a pool to gain, though nobody may know
/// how much.
const WORTH_CONNECTIONS: f64 = 0.1;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| match pair.end.model {
        Model::Process => cost(window, pair).map(|stall| {
            let per_s = serving_part(pair) * started_per_s(pair);
            stall
                .filter(|_| per_s >= MANY_CONNECTIONS_PER_S)
                .map(|stall| of_processes(&stall, pair, per_s))
        }),
        _ => Reading::Present(of_counts(window, pair)),
    });
    without_tax::with_reasons(window, found, |pair| why_unpriced(window, pair))
}

/// Why nothing is charged, where so many connect that it was found.
fn why_unpriced(window: &Window, pair: &Pair) -> String {
    let priced = || if is_unsampled(pair) { NOT_SAMPLED } else { LITTLE }.to_owned();
    cost(window, pair).why().unwrap_or_else(priced)
}

const NOT_SAMPLED: &str = "too little of it was sampled to tell";

const LITTLE: &str = "what connections cost it is less than 2 % of its time";

fn of_processes(stall: &Stall, pair: &Pair, per_s: f64) -> Says {
    let filling = catalog_share(pair).map(|filling| {
        Evidence::new(&evidence::CATALOG_ACCESSES, filling.of_all, "pg_stat_get_blocks_fetched")
    });
    let started = Evidence::new(&evidence::PROCESSES_STARTED, per_s, "scheduler's events");
    stall::finding(
        RULE.id,
        stall,
        Words {
            summary: format!(
                "{} of its time starting, filling and ending server processes, {per_s:.0} each \
                 second",
                percent(stall.share.mid)
            ),
            fix: "keep connections open: a pool in the application, or PgBouncer".to_owned(),
            evidence: [started].into_iter().chain(filling).collect(),
            method: METHOD.to_owned(),
            remedy: Some("pooler"),
        },
    )
}

const METHOD: &str = "time on a CPU, with its part of waiting for one, of new processes or threads \
    before their first request and after their last, and of who started them, traced; of the first requests of \
    PostgreSQL's processes the part of accesses to blocks that were to catalogs, and of threads three \
    tenths; less what small pages and neighbours are charged with, over active time";

const SAMPLED: &str = "time on a CPU in system calls that begin, set up and end connections, sampled, \
    and of its own program's as much as four commands for each, and waiting for one in proportion to the \
    machine's busy time, over active time";

fn of_counts(window: &Window, pair: &Pair) -> Option<Says> {
    let Counts { per_s, each, connections, requests } = counts(pair)?;
    let summary = format!("{per_s:.0} connections a second, of {each:.1} requests each");
    let fix = "keep connections open: a pool in the application, or a proxy that pools".to_owned();
    let evidence = vec![
        Evidence::new(&evidence::CONNECTIONS_PER_S, per_s, connections),
        Evidence::new(&evidence::REQUESTS_PER_S, each * per_s, requests),
    ];
    let remedy = Some("pooler");
    let often = each * WORTH_CONNECTIONS <= 1.0;
    let cost = cost(window, pair);
    let known = cost.is_present() && !is_unsampled(pair);
    if let Some(stall) = cost.into_value().flatten() {
        let summary = format!("{summary}: {} of its time", percent(stall.share.mid));
        let method = if pair.end.model == Model::Loop { SAMPLED } else { METHOD }.to_owned();
        let words = Words { summary, fix, evidence, method, remedy };
        return Some(stall::finding(RULE.id, &stall, words));
    }
    // What is known to cost less than is worth a finding is no more than worth knowing.
    let severity = if known { Severity::Info } else { Severity::Medium };
    often.then(|| {
        Says::Found(Finding {
            evidence,
            remedy: remedy.filter(|_| !known).map(str::to_owned),
            ..Finding::new(RULE.id, severity, summary, fix)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::connections::charged_to_loop;
    use crate::model::event_loop::connection_own_share;
    use crate::test_window::{self, found, gaps};
    use std::collections::BTreeMap;
    use untax_core::Seconds;
    use untax_core::activity::{Call, Doing};

    #[test]
    fn new_processes_are_charged_for_their_beginning_and_end() {
        let mut window = test_window::postgres();
        window.calibration = Reading::Absent("not measured".to_owned());
        test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
        assert!(found(evaluate(&window)).is_empty());
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].slices[0].connecting_s = Seconds(6.0);
            activities[0].started = 2000;
            activities[0].requests_seen = true;
        }
        let findings = found(evaluate(&window));
        let tax = findings[0].tax.as_ref().unwrap();
        assert!((tax.share - 0.6).abs() < 1e-9 && (tax.high - 0.6).abs() < 1e-9);
        assert!(findings[0].summary.contains("200 each second"));
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].requests_seen = false;
        }
        let tax = found(evaluate(&window)).remove(0).tax.unwrap();
        assert!((tax.share - 0.6).abs() < 1e-9 && (tax.high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn first_requests_count_as_far_as_they_read_catalogs() {
        let mut window = test_window::postgres();
        window.calibration = Reading::Absent("not measured".to_owned());
        test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let told = [("busiest", 1000), ("all", 1050), ("tables", 250)];
            let told = told.map(|(of, count)| (format!("accesses_of_{of}"), 7 + by * count));
            snapshot.databases[0].counters.told = Reading::Present(told.into());
        }
        assert!(found(evaluate(&window)).is_empty(), "nobody connects");
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].slices[0].connecting_s = Seconds(2.0);
            activities[0].slices[0].first_s = Seconds(4.0);
            activities[0].started = 2000;
        }
        let findings = found(evaluate(&window));
        let tax = findings[0].tax.as_ref().unwrap();
        assert!((tax.share - 0.5).abs() < 1e-9 && (tax.low - 0.2).abs() < 1e-9);
    }

    #[test]
    fn workers_of_parallel_queries_serve_nobody() {
        let mut window = test_window::postgres();
        window.calibration = Reading::Absent("not measured".to_owned());
        test_window::trace(&mut window, &[(Doing::OnCpu, 10.0), (Doing::Poll, 10.0)]);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].slices[0].connecting_s = Seconds(6.0);
            activities[0].started = 2000;
        }
        let mut sessions = |count| {
            for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, count)] {
                let told = BTreeMap::from([("sessions".to_owned(), 7 + by)]);
                snapshot.databases[0].counters.told = Reading::Present(told);
            }
            found(evaluate(&window))
        };
        assert!(sessions(8).is_empty());
        let share = |findings: &[Finding]| findings[0].tax.as_ref().unwrap().share;
        assert!((share(&sessions(1000)) - 0.3).abs() < 1e-9);
        assert!((share(&sessions(2001)) - 0.6).abs() < 1e-9, "one began just before");
        let gain = |findings: &[Finding]| findings[0].gain.unwrap().factor;
        let gains = [1000, 2001].map(|count| gain(&sessions(count)));
        assert!(gains[0] <= 1.0 / 0.7 + 1e-9, "workers' clients save nothing: {gains:?}");
        assert!(gains[0] > 1.25 && gains[1] > 1.5 * gains[0], "{gains:?}");
    }

    fn redis(connections: u64, commands: u64) -> Window {
        let mut window = test_window::postgres();
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let database = &mut snapshot.databases[0];
            test_window::make(database, "redis");
            database.model = Model::Loop;
            database.counters.told = Reading::Present(BTreeMap::from([
                ("total_connections_received".to_owned(), 5 + by * connections),
                ("total_commands_processed".to_owned(), 5 + by * commands),
            ]));
        }
        window
    }

    #[test]
    fn counts_of_the_engine_tell_where_no_process_does() {
        let findings = found(evaluate(&redis(10_000, 20_000)));
        assert!(findings[0].summary.contains("of 2.0 requests each"));
        assert!(findings[0].tax.is_none(), "nobody sampled");
        assert!(found(evaluate(&redis(10_000, 2_000_000))).is_empty());
        assert!(found(evaluate(&redis(10, 10))).is_empty());
    }

    #[test]
    fn without_a_price_it_says_why() {
        let why = |window: &Window| match evaluate(window).pop().unwrap().says {
            Says::Unmeasured(gap) => gap.why,
            other @ Says::Found(_) => panic!("{other:?}"),
        };
        let mut window = redis(10_000, 20_000);
        window.activity = Reading::Denied("BPF".to_owned());
        assert!(why(&window).contains("permission denied: BPF"));
        test_window::trace(&mut window, &[(Doing::OnCpu, 8.0), (Doing::Poll, 2.0)]);
        assert!(why(&window).contains("sampled"));
        assert_eq!(found(evaluate(&window))[0].severity, Severity::Medium);
        test_window::sample(&mut window, Call::Connection, 10);
        assert!(why(&window).contains("less than 2 %"));
        let little = found(evaluate(&window)).remove(0);
        assert_eq!((little.severity, little.remedy), (Severity::Info, None), "known to be little");
    }

    #[test]
    fn requests_that_a_thread_need_not_wait_for_are_told_by_what_it_receives() {
        let threads = |connections: u64, requests: u64, seen| {
            let mut window = redis(0, 0);
            test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
            for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
                let database = &mut snapshot.databases[0];
                test_window::make(database, "mysql");
                database.model = Model::Thread;
                let told = [("Connections", connections), ("Questions", requests)];
                let told = told.map(|(name, count)| (name.to_owned(), by * count));
                database.counters.told = Reading::Present(told.into());
            }
            let Reading::Present(activities) = &mut window.activity else { unreachable!() };
            activities[0].requests_seen = seen;
            activities[0].slices[0].connecting_s = Seconds(6.0);
            activities[0].slices[0].first_s = Seconds(2.0);
            evaluate(&window)
        };
        let tax = |diagnoses| found(diagnoses).remove(0).tax;
        assert!((tax(threads(10_000, 20_000, false)).unwrap().share - 0.6).abs() < 1e-9);
        assert!(tax(threads(10_000, 90_000, false)).is_none());
        assert!(gaps(threads(10_000, 90_000, false))[0].contains("does not wait for it"));
        assert!(threads(10_000, 200_000, false).is_empty(), "nobody's trouble, as far as is known");
        let tax = tax(threads(10_000, 200_000, true)).unwrap();
        assert!((tax.share - 0.66).abs() < 1e-9 && (tax.low - 0.6).abs() < 1e-9);
    }

    #[test]
    fn a_connection_takes_as_much_of_the_loops_own_time_as_four_commands() {
        let mut window = redis(10_000, 20_000);
        for (snapshot, by) in [(&mut window.start, 0.0), (&mut window.end, 1.0)] {
            let counters = &mut snapshot.databases[0].counters;
            counters.on_cpu_s = Reading::Present(Seconds(8.0 * by));
            counters.system_s = Reading::Present(Seconds(6.0 * by));
        }
        let own = connection_own_share(&window.databases().next().unwrap()).unwrap();
        // A quarter of its time is its own; 4 x 1 of 4 x 1 + (1.2 + 1) x 2 of that.
        assert!((own.mid - 0.25 * 4.0 / 8.4).abs() < 1e-9 && own.low.abs() < 1e-9);
        assert!((own.high - 0.25 * 7.0 / 11.4).abs() < 1e-9);
    }

    #[test]
    fn ends_of_connections_are_read_and_waited_for() {
        let mut window = redis(10_000, 20_000);
        test_window::trace(&mut window, &[(Doing::OnCpu, 8.0), (Doing::Poll, 2.0)]);
        test_window::sample(&mut window, Call::Receive, 300);
        assert!(found(evaluate(&window))[0].tax.is_none(), "nobody says how many reads");
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            if let Reading::Present(told) = &mut snapshot.databases[0].counters.told {
                told.insert("total_reads_processed".to_owned(), 3 + by * 30_000);
            }
        }
        let tax = |window: &Window| found(evaluate(window))[0].tax.as_ref().unwrap().share;
        assert!((tax(&window) - 0.1).abs() < 1e-9, "one of three");
        test_window::sample(&mut window, Call::Wait, 300);
        assert!((tax(&window) - 0.075).abs() < 1e-9, "one of four");
    }

    #[test]
    fn a_loop_is_charged_for_its_calls() {
        let mut window = redis(10_000, 20_000);
        test_window::trace(&mut window, &[(Doing::OnCpu, 8.0), (Doing::Poll, 2.0)]);
        test_window::sample(&mut window, Call::Connection, 300);
        let findings = found(evaluate(&window));
        assert!((findings[0].tax.as_ref().unwrap().share - 0.3).abs() < 1e-9);
        assert!(findings[0].summary.ends_with("30 % of its time"), "{}", findings[0].summary);
        let charged = |window: &Window| {
            let pair = window.databases().next().unwrap();
            charged_to_loop(window, &pair).into_value().flatten()
        };
        assert!(charged(&window).is_some());
        test_window::sample(&mut window, Call::Connection, 10);
        assert!(charged(&window).is_none(), "too little for a finding");
        let mut seldom = redis(10_000, 200_000);
        assert!(found(evaluate(&seldom)).is_empty(), "nobody sampled");
        test_window::trace(&mut seldom, &[(Doing::OnCpu, 8.0), (Doing::Poll, 2.0)]);
        test_window::sample(&mut seldom, Call::Connection, 300);
        assert!(found(evaluate(&seldom))[0].tax.is_some());
    }
}
