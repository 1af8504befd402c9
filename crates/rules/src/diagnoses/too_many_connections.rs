//! `too-many-connections`: many more connections are at work than there are CPUs.

use crate::evidence;
use crate::model::accounting::Demand;
use crate::model::base_pages;
use crate::model::cpus;
use crate::model::laws::fitted::LEFT_IN_A_POOL;
use crate::model::stall::gain::gains_of_cpu_time;
use crate::model::stall::{self, WORTH};
use crate::model::without_tax;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::{Doing, Spent};
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::reading::Gap;
use untax_core::window::Pair;
use untax_core::{
    Activity, Diagnosis, Evidence, Finding, Interval, Reading, Severity, Tax, Window,
};

pub const RULE: Rule = Rule {
    id: "too-many-connections",
    summary: "many more connections are at work than there are CPUs",
    what: "A CPU runs one thread at a time; the others wait in its run queue. Meanwhile they or \
           their clients hold snapshots, locks and memory. Latency grows with the queue. When a \
           process has its turn again, its memory is in no cache: short requests take two to four \
           times as long on a CPU. A pool of a few connections for each CPU does the same work \
           with a short queue.",
    method: "The rule traces how many threads want a CPU at once and compares that with the CPUs. \
             For PostgreSQL the rule times the cost of cold caches.",
    measured: "The rule traces how many threads that serve clients got a request, and how many \
               were on a CPU or waiting for one on average. It compares both with the CPUs. The \
               rule finds a database where at least 16 threads for each CPU take turns. In \
               addition, as many threads must want a CPU at once, or cold caches must cost \
               something. For PostgreSQL the tax is the cost of cold caches. After the window, \
               untax sends such a server the same small prepared statement three times in a row. \
               Before that, others had the CPU for 10 ms. The server gets these statements for 0.6 \
               s (up to 6 s, until the server has answered nine times). The server's own clock \
               shows how much longer the first statement takes than the third. The tax is that \
               part of the database's time on CPU outside of the kernel. If the same time for each \
               transaction gives less, the tax is that smaller time. The charge of small-pages is \
               not counted again. Other statements may use more memory than this one, or less. So \
               the lower bound is zero, and the upper bound is the same part of all the database's \
               time on CPU. A pool takes turns too, so the gain comes from 85 % of the tax. For \
               other engines, and in untax watch, the tax is unmeasured. The queue itself is \
               latency and takes no time of the database.",
    fix: "Use a pooler (PgBouncer in transaction mode, thread_handling=pool-of-threads, ProxySQL) \
          of two to four connections for each CPU.",
    sources: &[
        "pgbouncer.org: config, pool_mode and default_pool_size",
        "mariadb.com: thread pool",
        "github.com/brettwooldridge/HikariCP: about pool sizing",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON); for its tax a server that lets itself be asked",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s; from 16 backends for each CPU on \
           some 150 small statements",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Database,
    evaluate,
};

/// Pools are sized at two to four connections for each CPU; at four times that, nobody sized
/// them.
const WORTH_EACH_CPU: f64 = 16.0;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| {
        if !matches!(pair.end.model, Model::Process | Model::Thread) {
            return Reading::Present(None);
        }
        let traced = pair.activity.clone();
        let cpus = cpus::count(&window.end.host, pair.end);
        traced.and_then(|activity| cpus.map(|cpus| finding(window, pair, activity, cpus)))
    });
    let why = |pair: &Pair| Reading::from(Coldness::of(window, pair)).why().unwrap_or_default();
    without_tax::with_reasons(window, found, why)
}

fn finding(window: &Window, pair: &Pair, activity: &Activity, cpus: f64) -> Option<Says> {
    let serving = |counts: fn(Doing) -> bool| {
        let counts = |spent: &Spent| spent.serves(pair.end.model) && counts(spent.doing);
        activity.sum(counts).0 / activity.window_s.0.max(f64::EPSILON)
    };
    let at_work = serving(|doing| doing != Doing::Dormant);
    let at_once = serving(|doing| matches!(doing, Doing::OnCpu | Doing::Contended));
    if at_work < WORTH_EACH_CPU * cpus {
        return None;
    }
    let priced = Coldness::of(window, pair).ok();
    let tax = priced.as_ref().map(|coldness| coldness.demand.share_of(coldness.taken_s));
    // Where there is no queue it may be in front of the clients' own threads.
    let is_queue = at_once >= WORTH_EACH_CPU * cpus;
    if !is_queue && tax.is_none_or(|tax| tax.mid < WORTH) {
        return None;
    }
    let mut evidence = vec![
        Evidence::new(&evidence::AT_WORK, at_work, "scheduler's events, mean"),
        Evidence::new(&evidence::WANTING_CPU, at_once, "scheduler's events, mean"),
        Evidence::new(&evidence::CPUS, cpus, "Cpus_allowed_list and limits"),
    ];
    if let Some(connections) = pair.end.connections.value() {
        evidence.push(Evidence::new(&evidence::CONNECTIONS, u64::from(*connections), "the server"));
    }
    if let Some(coldness) = &priced {
        let clock = "clock_timestamp() - transaction_timestamp()";
        evidence.push(Evidence::new(&evidence::STATEMENT_COLD, coldness.cold_ns / 1e9, clock));
        evidence.push(Evidence::new(&evidence::STATEMENT_WARM, coldness.warm_ns / 1e9, clock));
    }
    let gains = priced.map(|cold| gains_of_cpu_time(window, pair, &cold.demand, cold.saved_s()));
    let by_tax = tax.map_or(Severity::Medium, stall::severity);
    let by_queue = if is_queue { Severity::Medium } else { Severity::Low };
    Some(Says::Found(Finding {
        evidence,
        tax: tax.map(|tax| Tax::new(tax, METHOD).with_model(true)),
        gain: gains.map(|gains| gains.throughput),
        latency_gain: gains.map(|gains| gains.latency),
        remedy: Some("pooler".to_owned()),
        ..Finding::new(
            RULE.id,
            by_tax.max(by_queue),
            format!(
                "{at_work:.0} connections take turns on {cpus:.0} CPUs, {at_once:.0} want one at any moment"
            ),
            format!("use a pooler with {:.0} to {:.0} connections", 2.0 * cpus, 4.0 * cpus),
        )
    }))
}

const METHOD: &str = "time on CPU outside of the kernel x how much longer a statement takes with cold \
    caches, timed by the server, or that for each transaction if less, over active time";

const NOT_TIMED: &str = "PostgreSQL alone times what cold caches cost, at the end of a check, where it \
    answers nine times in 6 s";

const NO_COLDER: &str = "a statement took no longer after others had had the CPU";

/// What it costs that every process finds its memory in no cache.
struct Coldness {
    demand: Demand,
    taken_s: Interval,
    cold_ns: f64,
    warm_ns: f64,
}

impl Coldness {
    /// A gap where the server did not time it, or it makes no difference.
    fn of(window: &Window, pair: &Pair) -> Result<Self, Gap> {
        let told = pair.end.counters.told.as_ref().into_result()?;
        let timed = |name: &str| told.get(name).map(|ns| *ns as f64);
        let Some((cold_ns, warm_ns)) = timed("cold_statement_ns").zip(timed("warm_statement_ns"))
        else {
            return Err(Gap::Absent(NOT_TIMED.to_owned()));
        };
        if cold_ns <= warm_ns {
            return Err(Gap::Absent(NO_COLDER.to_owned()));
        }
        let requests = pair.end.traits.requests_counter.as_deref().unwrap_or_default();
        let requests = pair.told_growth(requests).into_result()?;
        let system = pair.growth("system time", |d| d.counters.system_s.clone().map(|s| s.0));
        let demand = Demand::of(window, pair).into_result()?;
        let user_s = (demand.on_cpu_s - system.into_result()?).max(0.0);
        let part = 1.0 - warm_ns / cold_ns;
        let each_s = requests * (cold_ns - warm_ns) / 1e9;
        let charged_s = base_pages::charged_s(window, pair);
        let rest = |taken_s: f64| (taken_s - charged_s).max(0.0);
        let most_s = rest(demand.on_cpu_s * part);
        let taken_s = Interval::new(0.0, rest(each_s.min(user_s * part)), most_s);
        Ok(Self { demand, taken_s, cold_ns, warm_ns })
    }

    /// What a pool saves of it.
    fn saved_s(&self) -> Interval {
        Interval { mid: self.taken_s.mid * (1.0 - LEFT_IN_A_POOL), ..self.taken_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::{Bytes, Seconds};

    fn queue(contended_s: f64) -> Vec<Finding> {
        let mut window = test_window::postgres();
        window.end.host.cpu = Reading::Present(test_window::cpus(2));
        test_window::trace(&mut window, &[(Doing::OnCpu, 15.0), (Doing::Contended, contended_s)]);
        test_window::found(evaluate(&window))
    }

    #[test]
    fn a_long_queue_is_found_and_a_short_one_is_not() {
        let findings = queue(2000.0);
        let summary = "202 connections take turns on 2 CPUs, 202 want one at any moment";
        assert_eq!(findings[0].summary, summary);
        assert!(findings[0].fix.contains("4 to 8"));
        assert!(findings[0].tax.is_none(), "nobody timed it");
        let mut window = test_window::postgres();
        window.end.host.cpu = Reading::Present(test_window::cpus(2));
        test_window::trace(&mut window, &[(Doing::Contended, 2000.0)]);
        let mut why = |told| {
            window.end.databases[0].counters.told = told;
            match evaluate(&window).pop().unwrap().says {
                Says::Unmeasured(gap) => gap.why,
                other @ Says::Found(_) => panic!("{other:?}"),
            }
        };
        assert!(why(Reading::Present([].into())).contains("PostgreSQL alone times"));
        assert!(why(Reading::Failed("no answer in 2s".to_owned())).contains("no answer in 2s"));
        assert!(why(Reading::Absent("no local socket".to_owned())).contains("no local socket"));
        assert!(queue(65.0).is_empty());
        assert!(taking_turns(1_000_000, 10.0).is_empty(), "five are nobody's crowd");
    }

    /// A server that has timed cold caches, with a third of its time on CPU inside the kernel.
    fn timed(transactions: u64, times: &[(Doing, f64)]) -> Window {
        let mut window = test_window::postgres();
        window.end.host.cpu = Reading::Present(test_window::cpus(2));
        window.end.databases[0].memory.page_size_bytes = Reading::Present(Bytes::MIB_2);
        test_window::trace(&mut window, times);
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let counters = &mut snapshot.databases[0].counters;
            counters.system_s = Reading::Present(Seconds(5.0 * by as f64));
            let told = [
                ("cold_statement_ns", 100_000),
                ("warm_statement_ns", 25_000),
                ("transactions", by * transactions),
            ];
            let told = told.map(|(name, count)| (name.to_owned(), count));
            counters.told = Reading::Present(told.into());
        }
        window
    }

    /// Connections that wait for their clients for so long in all, none of them for a CPU.
    fn taking_turns(transactions: u64, asked_s: f64) -> Vec<Finding> {
        let times = [(Doing::OnCpu, 15.0), (Doing::Poll, asked_s)];
        test_window::found(evaluate(&timed(transactions, &times)))
    }

    #[test]
    fn a_queue_may_be_in_front_of_the_clients() {
        let finding = taking_turns(1_000_000, 2000.0).remove(0);
        let summary = "202 connections take turns on 2 CPUs, 2 want one at any moment";
        assert_eq!(finding.summary, summary);
        assert!(finding.tax.unwrap().share > 0.4);
        assert!(taking_turns(1000, 2000.0).is_empty(), "it costs nothing");
    }

    #[test]
    fn a_pool_takes_turns_too() {
        let window = timed(1_000_000, &[(Doing::OnCpu, 15.0), (Doing::Contended, 2000.0)]);
        let coldness = Coldness::of(&window, &window.databases().next().unwrap()).unwrap();
        let (taken_s, saved_s) = (coldness.taken_s, coldness.saved_s());
        assert_eq!((saved_s.low, saved_s.high), (taken_s.low, taken_s.high), "as ill known");
        assert!((saved_s.mid / taken_s.mid - 0.85).abs() < 1e-9, "{saved_s:?} of {taken_s:?}");
    }

    #[test]
    fn cold_caches_cost_a_part_of_each_request_and_no_more_than_they_add() {
        let share = |transactions: u64| {
            let times = [(Doing::OnCpu, 15.0), (Doing::Contended, 2000.0)];
            let window = timed(transactions, &times);
            let tax = test_window::found(evaluate(&window)).remove(0).tax.unwrap();
            // Three quarters of all its time on CPU, as a part of the 20 s that the CPUs were busy.
            let most = (11.25 + 2000.0 * 11.25 / 20.0) / 2015.0;
            assert!(tax.low == 0.0 && (tax.high - most).abs() < 1e-9, "{tax:?}");
            tax.share
        };
        // Three quarters of 10 s outside of the kernel, and as much of the waiting.
        let times = share(1_000_000) / share(40_000);
        assert!((times - 7.5 / 3.0).abs() < 1e-9, "40,000 times 75 us are 3 s: {times}");
        assert!(share(0) == 0.0, "nobody asked for anything");
    }
}
