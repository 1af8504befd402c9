//! `short-connections`: clients connect anew for a few requests.

use crate::diagnoses::small_pages;
use crate::model::accounting::{Demand, neighbours_part};
use crate::model::cold_caches::filling;
use crate::model::event_loop::{calling, own_work};
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::model::without_tax;
use crate::rule::Rule;
use untax_core::activity::{Doing, MANY_CONNECTIONS_PER_S};
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::window::{Pair, request_count};
use untax_core::{Diagnosis, Evidence, Finding, Interval, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "short-connections",
    summary: "clients connect anew for a few requests, and connecting costs more than these",
    what: "A connection is dear: a new server process or thread, authentication, caches that are \
           filled again, page tables that are built and torn down. A client that connects for \
           every request pays all of it each time, and the database does little else.",
    measured: "Traced, over active time: the time on a CPU of processes started in the window, or of \
               threads that began to serve a client in it, until they waited for their first \
               request and after their last one, and of the main process while it started them; \
               and as large a part of all waiting for a CPU as this is of all time on one. \
               Requests are told by what processes and threads send and receive (kernel 6.3 and \
               later; of processes once more than twenty start a second): one that is there already \
               is not waited for. Older kernels leave the tax unmeasured where a thread serves \
               several on a connection, and its upper bound is all of the time where processes serve \
               clients. A PostgreSQL that counts its sessions (14 or later) starts processes for \
               parallel queries too: these are left out in proportion. The first three requests of \
               a thread's new client count for three tenths (colder caches, MariaDB in the lab), \
               and the lower bound leaves these out. The first of a new process fill its caches \
               too: of PostgreSQL's first four requests the part counts that accesses to catalogs \
               are of their accesses to blocks, as if later ones made none, when one database has \
               nearly all; the lower bound leaves it out, and where that is not known the upper one \
               takes all. Clients on this machine are taken to connect for as large a part of their \
               time on CPU. For engines that serve all clients in one thread: their own counts of \
               connections and requests; the time on CPU in system calls that begin, set up and end \
               connections; and, of calls that read from clients and wait for them, the part that \
               beginnings and ends of connections are of all that is read and waited for (up to 997 \
               samples a second and CPU); and of their own program's time as much for each \
               connection as four commands take (none to seven: nothing tells it apart). Of clients \
               on this machine the system calls alone are taken to end then.",
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
    evaluate,
};

/// An application that connects for every tenth request has a pool to gain, though nobody may know
/// how much.
const WORTH_CONNECTIONS: f64 = 0.1;

/// The part of the first three requests of a thread's new client that colder caches take: with it the
/// tax is what the server's time on CPU for each connection says, with and without. Of MariaDB 10.11 that
/// took 0.4 with one request and 0.2 with eight.
const COLD: f64 = 0.3;

/// Where requests are told by when they are waited for, the way to the first is not known of threads with
/// more of them for each connection than this: one, and the word that ends the connection, which
/// MariaDB counts too.
const MOST_TOLD: f64 = 2.2;

const HIDDEN: &str = "a thread that finds a request there does not wait for it; this kernel cannot tell \
    several requests of one connection from its beginning (6.3 and later can)";

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| match pair.end.model {
        Model::Process => traced(window, pair).map(|stall| {
            let per_s = serving(pair) * started_per_s(pair);
            stall
                .filter(|_| per_s >= MANY_CONNECTIONS_PER_S)
                .map(|stall| of_processes(&stall, pair, per_s))
        }),
        _ => Reading::Present(of_counts(window, pair)),
    });
    without_tax::explained(window, found, |pair| why_unpriced(window, pair))
}

/// Why nothing is charged, where so many connect that it was found.
fn why_unpriced(window: &Window, pair: &Pair) -> String {
    let priced = || if is_unsampled(pair) { NOT_SAMPLED } else { LITTLE }.to_owned();
    traced(window, pair).why().unwrap_or_else(priced)
}

/// Whether it takes samples to tell, and too few were taken.
fn is_unsampled(pair: &Pair) -> bool {
    pair.end.model == Model::Loop && calling(pair).is_none()
}

const NOT_SAMPLED: &str = "too little of it was sampled to tell";

const LITTLE: &str = "what connections cost it is less than 2 % of its time";

/// What connections cost, when it is worth a finding.
fn traced(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    // Processes and threads have a beginning and an end for each client, a loop has not. What
    // neighbours took of its waiting is no part of what its calls are charged.
    if pair.end.model == Model::Loop {
        return of_loop(window, pair);
    }
    let told = pair.activity.value().is_some_and(|activity| activity.requests_seen);
    let filling = match pair.end.model {
        Model::Thread if told => [COLD; 2],
        // A thread that finds the next request there already serves several before it waits for one,
        // and all of them would count as the way to the first.
        Model::Thread if counted(pair).is_some_and(|c| c.each > MOST_TOLD) => {
            return Reading::Absent(HIDDEN.to_owned());
        }
        // Who is not told may fill all of them.
        _ => filling(pair).map_or([0.0, 1.0], |filling| [filling.of_first; 2]),
    };
    Stall::connecting(window, pair, filling, serving(pair)).map(|stall| {
        let stall = stall?;
        let left = (stall.share.mid - charged_elsewhere(window, pair, stall.share.mid)).max(0.0);
        let part = if stall.share.mid > 0.0 { left / stall.share.mid } else { 0.0 };
        let stall = stall.times(part);
        // A process that finds each request there never waits for one: then nothing of it was charged.
        let unseen = pair.end.model == Model::Process && !told;
        let low = stall.share.low;
        let stall = if unseen { stall.within(low, 1.0) } else { stall };
        Some(stall).filter(|stall| stall.share.mid >= WORTH)
    })
}

/// The same of an event loop.
fn of_loop(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    // Without the counts that tell it may be none, or all that is left.
    let own = own_work(pair).unwrap_or(Interval::new(0.0, 0.0, 1.0));
    let calls = calling(pair);
    let taken = calls.map(|calls| calls.plus(own).clamp(0.0, 1.0));
    // Clients make as many system calls for it; what their own programs take nobody knows.
    let of_calls =
        calls.zip(taken).map_or(0.0, |(calls, taken)| calls.mid / taken.mid.max(f64::EPSILON));
    Stall::calling(window, pair, taken).map(|stall| {
        let stall = stall.filter(|stall| stall.share.mid >= WORTH)?;
        let of_clients = stall.share.mid * of_calls;
        Some(stall.of_both_ends(of_clients))
    })
}

/// How many server processes, or threads, were started in the window.
pub fn started(pair: &Pair) -> f64 {
    pair.activity.value().map_or(0.0, |activity| activity.started as f64)
}

fn started_per_s(pair: &Pair) -> f64 {
    let traced_s = pair.activity.value().map_or(pair.seconds, |activity| activity.window_s.0);
    started(pair) / traced_s.max(f64::EPSILON)
}

/// How many of these serve nobody: workers of parallel queries, for the most part.
pub fn workers_started(pair: &Pair) -> f64 {
    started(pair) * (1.0 - serving(pair))
}

/// The part (0..1) of these that serves a client, as far as the server tells: workers of parallel queries
/// are started like any other process.
pub fn serving(pair: &Pair) -> f64 {
    let sessions = pair.told_growth("sessions").into_value();
    sessions.map_or(1.0, |sessions| (sessions / started(pair).max(1.0)).min(1.0))
}

fn of_processes(stall: &Stall, pair: &Pair, per_s: f64) -> Says {
    let filling = filling(pair).map(|filling| {
        Evidence::new("accesses to catalogs", filling.of_all, "share", "pg_stat_get_blocks_fetched")
    });
    let started = Evidence::new("processes started", per_s, "1/s", "scheduler's events");
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

/// What other rules charge of the time that connections took: faults on small pages, and waiting
/// for CPUs that neighbours had.
fn charged_elsewhere(window: &Window, pair: &Pair, share: f64) -> f64 {
    let contended = Stall::of(window, pair, |spent| spent.doing == Doing::Contended);
    let contended = contended.into_value().flatten().map_or(0.0, |stall| stall.share.mid);
    // What neighbours had of its waiting was not stolen.
    let part = Demand::of(window, pair)
        .into_value()
        .map_or(0.0, |demand| (neighbours_part(window, pair, &demand) / demand.had()).min(1.0));
    small_pages::share_of_faults(window, pair) + share * contended * part
}

/// What an engine calls its connections so far.
const COUNTS: [(&str, &str); 2] =
    [("mysql", "Connections"), ("redis", "total_connections_received")];

/// Connections and requests of a window, when so many connect that somebody may suffer.
fn counted(pair: &Pair) -> Option<Counted> {
    let (_, connections) = COUNTS.iter().find(|(engine, _)| *engine == pair.end.engine)?;
    let requests = request_count(&pair.end.engine)?;
    // An engine that is not asked, or refuses, has said so with its settings already.
    let grown = |name: &str| pair.told_growth(name).into_value();
    let (connected, asked) = (grown(connections)?, grown(requests)?);
    let per_s = connected / pair.seconds.max(f64::EPSILON);
    if per_s < MANY_CONNECTIONS_PER_S {
        return None;
    }
    Some(Counted { per_s, each: asked / connected, connections, requests })
}

/// What [`counted`] gives.
struct Counted {
    /// Connections each second.
    per_s: f64,
    /// Requests of each connection.
    each: f64,
    /// What the engine calls both.
    connections: &'static str,
    requests: &'static str,
}

/// The share of its time on CPU that a loop is charged for connections' system calls here, when it is.
pub fn charged_to_loop(window: &Window, pair: &Pair) -> Option<Interval> {
    counted(pair).filter(|_| pair.end.model == Model::Loop)?;
    traced(window, pair).into_value().flatten()?;
    calling(pair)
}

fn of_counts(window: &Window, pair: &Pair) -> Option<Says> {
    let Counted { per_s, each, connections, requests } = counted(pair)?;
    let summary = format!("{per_s:.0} connections a second, of {each:.1} requests each");
    let fix = "keep connections open: a pool in the application, or a proxy that pools".to_owned();
    let evidence = vec![
        Evidence::new("connections", per_s, "1/s", connections),
        Evidence::new("requests", each * per_s, "1/s", requests),
    ];
    let remedy = Some("pooler");
    let often = each * WORTH_CONNECTIONS <= 1.0;
    let traced = traced(window, pair);
    let known = traced.is_present() && !is_unsampled(pair);
    if let Some(stall) = traced.into_value().flatten() {
        let summary = format!("{summary}: {} of its time", percent(stall.share.mid));
        let method = if pair.end.model == Model::Loop { SAMPLED } else { METHOD }.to_owned();
        let words = Words { summary, fix, evidence, method, remedy };
        return Some(stall::finding(RULE.id, &stall, words));
    }
    often.then(|| {
        Says::Found(Finding {
            rule: RULE.id.to_owned(),
            // Known to cost less than is worth a finding.
            severity: if known { Severity::Info } else { Severity::Medium },
            summary,
            fix,
            evidence,
            tax: None,
            gain: None,
            remedy: remedy.filter(|_| !known).map(str::to_owned),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found, gaps};
    use std::collections::BTreeMap;
    use untax_core::Seconds;
    use untax_core::activity::Call;

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
        assert!((gain(&sessions(1000)) - 1.0 / 0.7).abs() < 1e-9, "workers' clients save nothing");
    }

    fn redis(connections: u64, commands: u64) -> Window {
        let mut window = test_window::postgres();
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let database = &mut snapshot.databases[0];
            database.engine = "redis".to_owned();
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
                (database.engine, database.model) = ("mysql".to_owned(), Model::Thread);
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
        let own = own_work(&window.databases().next().unwrap()).unwrap();
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
        let charged = |window: &Window| charged_to_loop(window, &window.databases().next()?);
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
