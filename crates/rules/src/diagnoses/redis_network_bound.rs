//! `redis-network-bound`: one thread of Redis spends its time in the network stack.

use crate::evidence;
use crate::model::accounting::{self, Demand, factor};
use crate::model::connections;
use crate::model::event_loop::Counts;
use crate::model::stall::gain::gains_of_share;
use crate::model::stall::{self, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::{Doing, Spent};
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Interval, Reading, Severity, Tax, Window};

pub const RULE: Rule = Rule {
    id: "redis-network-bound",
    summary: "the one thread that runs commands spends most of its time reading and writing sockets",
    what: "Redis runs commands on one thread. By default that thread also reads every request from \
           its socket and writes every answer to it. With small requests one by one, the thread \
           spends two thirds of its time in the kernel's network stack while other CPUs idle.",
    method: "The tax is the database's time in the kernel as a share of its time on a CPU, where \
             it keeps a CPU busy.",
    measured: "The rule takes time in the kernel (stime of /proc/PID/stat) over time on CPU, less \
               what short-connections charges. The rule finds a database that keeps a CPU busy for \
               80 % of the window and spends half of that in the kernel. The tax is that share, \
               plus the time that its own program takes to read: 1.2 of a command for each read \
               (none to 2.4). Redis 6.0 and later counts reads (total_reads_processed); before, \
               each command is assumed to be read alone. The rule says nothing about a server with \
               io-threads, because nothing shows which thread spends the time. The rule also says \
               nothing while another process of the server saves and is busy. The gain assumes 16 \
               requests at a time, or io-threads where idle CPUs allow more than that. The lower \
               bound is no gain; the upper bound assumes that all of the tax ends.",
    fix: "Pipeline requests in the client. Set io-threads to 2 to 4 when CPUs are idle. Or use \
          several shards.",
    sources: &["redis.io: redis.conf, io-threads", "redis.io: pipelining"],
    privilege: "none",
    minimum_kernel: "2.6",
    cost: "files that are read anyway",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// Of one CPU: below, the thread has time to spare and nothing waits for it.
const BUSY: f64 = 0.8;

/// Below, commands cost more than sockets.
const KERNEL: f64 = 0.5;

/// Requests at a time that clients are supposed to be able to send: as in redis.io's own example of
/// pipelining.
const BATCH: f64 = 16.0;

/// A gain below this is no reason to change anything.
const WORTH_GAIN: f64 = 1.1;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        if pair.end.model != Model::Loop || has_io_threads(pair) {
            return Reading::Present(None);
        }
        let system =
            pair.growth("time in the kernel", |d| d.counters.system_s.clone().map(|s| s.0));
        system.and_then(|system_s| {
            match Demand::of(window, pair) {
                // An idle database has no demand: nothing to say, and no gap either.
                Reading::Absent(_) => Reading::Present(None),
                demand => demand.and_then(|demand| {
                    let saving_s = saving_s(pair);
                    let is_busy = demand.on_cpu_s >= BUSY * pair.seconds;
                    if is_busy && saving_s > LITTLE * demand.on_cpu_s {
                        return Reading::Absent(SAVES.to_owned());
                    }
                    if !is_busy {
                        return Reading::Present(None);
                    }
                    connections::charged_to_loop(window, pair)
                        .map(|connecting| finding(window, pair, &demand, system_s, connecting))
                }),
            }
        })
    })
}

/// Whether other threads read and write its sockets already.
fn has_io_threads(pair: &Pair) -> bool {
    let threads = pair.end.setting("io-threads").into_value();
    threads.and_then(|threads| threads.parse::<u32>().ok()).is_some_and(|threads| threads > 1)
}

/// Time on CPU of what is not the thread that runs commands: processes that save, background threads.
fn saving_s(pair: &Pair) -> f64 {
    let model = pair.end.model;
    let saves = |s: &Spent| s.in_background(model) && Doing::OnCpu == s.doing;
    pair.activity.value().map_or(0.0, |activity| activity.sum(saves).0)
}

const SAVES: &str = "its saving process or background threads used CPUs too: time in the kernel \
                     is counted for all together";

/// This part of its time on CPU blurs nothing.
const LITTLE: f64 = 0.05;

/// The finding, if the kernel took enough of the time on CPU beside the share `connecting` that
/// `short-connections` charges.
fn finding(
    window: &Window,
    pair: &Pair,
    demand: &Demand,
    system_s: f64,
    connecting: Option<Interval>,
) -> Option<Says> {
    let in_clock_ticks = 0.01 / pair.seconds.max(0.01);
    // What frees memory is told apart.
    let activity = pair.activity.value();
    let freeing_s = activity.map_or(0.0, |activity| activity.doing(&[Doing::ReclaimOnCpu]).0);
    let on_cpu_s = accounting::on_cpu(pair).into_value().unwrap_or(demand.on_cpu_s);
    let kernel = ((system_s - freeing_s) / on_cpu_s).min(1.0);
    let kernel = Interval::new(kernel - in_clock_ticks, kernel, kernel + in_clock_ticks);
    let kernel = kernel.minus(connecting.unwrap_or(Interval::exact(0.0))).clamp(0.0, 1.0);
    if kernel.mid < KERNEL {
        return None;
    }
    let counts = Counts::of(pair);
    // Without counts it may take none of its own program's time, or all.
    let reading = counts.as_ref().map_or(Interval::new(0.0, 0.0, 1.0), Counts::reading_part);
    let reading = reading.scale(1.0 - (system_s / on_cpu_s).min(1.0));
    let taken = kernel.plus(reading).clamp(0.0, 1.0);
    // What was stolen of it comes back with it, and is the tax of another rule.
    let share = demand.bound(taken.scale(demand.on_cpu_s / demand.active_s));
    let together = counts.as_ref().and_then(Counts::commands_of_read);
    let batches = factor(share.mid * (1.0 - together.unwrap_or(1.0) / BATCH).max(0.0));
    let most = (demand.capacity_s / demand.busy_s).max(1.0);
    let threads = factor(share.mid).min(most);
    // A plan with them is to bring what is said.
    let by_threads = threads >= WORTH_GAIN.max(batches);
    let mid = if by_threads { threads } else { batches };
    let factors = Interval::new(1.0, mid, factor(share.high));
    let gains = gains_of_share(window, pair, share, factors);
    let mut evidence = vec![
        Evidence::new(&evidence::SYSTEM_TIME, system_s, "stime, /proc/PID/stat"),
        Evidence::new(&evidence::CPU_TIME, demand.on_cpu_s, "scheduler"),
    ];
    let source = "INFO, total_reads_processed";
    evidence.extend(together.map(|t| Evidence::new(&evidence::REQUESTS_AT_ONCE, t, source)));
    Some(Says::Found(Finding {
        evidence,
        tax: Some(Tax::new(
            share.scale(demand.unstolen_part()),
            "time in the kernel, counted in clock ticks, less what connections are charged and what \
             freed memory, and its own program's part for each read, over active time",
        )),
        gain: Some(gains.throughput),
        latency_gain: Some(gains.latency),
        remedy: by_threads.then(|| "redis-io-threads".to_owned()),
        ..Finding::new(
            RULE.id,
            Severity::Medium,
            format!("{} of its time on CPU in the kernel's network stack", percent(kernel.mid)),
            fix(batches, threads),
        )
    }))
}

/// What may help: requests in batches, or threads as far as CPUs are idle.
fn fix(batches: f64, threads: f64) -> String {
    let idle = format!("idle CPUs allow {threads:.1}x");
    match (batches >= WORTH_GAIN, threads >= WORTH_GAIN) {
        (true, true) => format!("pipeline requests, or set io-threads: {idle}"),
        (true, false) => "pipeline requests; no CPU is idle that io-threads could use".to_owned(),
        (false, true) => format!("set io-threads: {idle}"),
        (false, false) => {
            "use several shards: requests come in batches already, and no CPU is idle".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::Seconds;
    use untax_core::activity::Polling;
    use untax_core::database::Settings;

    fn redis(on_cpu_s: f64, system_s: f64, idle_s: f64) -> Vec<Finding> {
        test_window::found(evaluate(&busy(on_cpu_s, system_s, idle_s)))
    }

    fn busy(on_cpu_s: f64, system_s: f64, idle_s: f64) -> Window {
        let mut window = test_window::postgres();
        for (snapshot, by) in [(&mut window.start, 0.0), (&mut window.end, 1.0)] {
            let database = &mut snapshot.databases[0];
            test_window::make(database, "redis");
            database.model = Model::Loop;
            database.counters.on_cpu_s = Reading::Present(Seconds(on_cpu_s * by));
            database.counters.runnable_s = Reading::Present(Seconds(0.0));
            database.counters.system_s = Reading::Present(Seconds(system_s * by));
            if let Reading::Present(time) = &mut snapshot.host.cpu_time {
                time.busy_s = Seconds(on_cpu_s * by);
                time.idle_s = Seconds(idle_s * by);
            }
        }
        window
    }

    #[test]
    fn a_busy_thread_in_the_kernel_is_bound_by_the_network() {
        let findings = redis(9.5, 6.65, 10.5);
        assert!((findings[0].tax.as_ref().unwrap().share - 0.7).abs() < 1e-9);
        assert_eq!(findings[0].severity, Severity::Medium);
        assert!(redis(5.0, 4.0, 15.0).is_empty(), "it has time to spare");
        assert!(redis(9.5, 2.0, 10.5).is_empty(), "commands cost more");
        let mut threaded = busy(9.5, 6.65, 10.5);
        let values = [("io-threads".to_owned(), "4".to_owned())].into();
        let settings = Settings { source: String::new(), instead_of: String::new(), values };
        threaded.end.databases[0].settings = Reading::Present(settings);
        assert!(test_window::found(evaluate(&threaded)).is_empty(), "it has io-threads");
        // Threads take it as far as a CPU is idle, batches all but a sixteenth of it.
        assert!((findings[0].gain.unwrap().factor - 1.0 / (1.0 - 0.7 * 15.0 / 16.0)).abs() < 1e-9);
        assert!(findings[0].remedy.is_none(), "they bring less than batches");
        let roomy = redis(9.5, 6.65, 100.0).remove(0);
        assert!((roomy.gain.unwrap().factor - 1.0 / 0.3).abs() < 1e-9 && roomy.remedy.is_some());
        assert!((findings[0].tax.as_ref().unwrap().high - 1.0).abs() < 1e-9, "nobody counts reads");
        assert_eq!(findings[0].evidence.len(), 2);
        assert!(findings[0].fix.ends_with("allow 2.1x"), "{}", findings[0].fix);
    }

    #[test]
    fn what_was_stolen_is_not_charged_to_the_network_too() {
        // 9.5 s by the clock on the wall; by that of user and kernel time all of it, or the half that was
        // not stolen.
        for counted in [1.0, 0.5] {
            let mut window = busy(9.5 * counted, 6.65 * counted, 10.5);
            let of_redis = window.start.databases[0].counters.on_cpu_s.clone();
            test_window::trace(&mut window, &[(Doing::OnCpu, 9.5)]);
            window.start.databases[0].counters.on_cpu_s = of_redis;
            let expected = [0.7, 0.35, 0.5];
            test_window::about(expected, test_window::beside_steal(&RULE, window));
        }
    }

    #[test]
    fn a_process_that_saves_is_not_the_thread() {
        let seen = |thread_s: f64, saving_s: f64| {
            let mut window = busy(thread_s + saving_s, 0.6 * (thread_s + saving_s), 1.0);
            for snapshot in [&mut window.start, &mut window.end] {
                snapshot.databases[0].model = Model::Loop;
            }
            test_window::trace(&mut window, &[(Doing::OnCpu, thread_s)]);
            let Reading::Present(activities) = &mut window.activity else { unreachable!() };
            let time_s = Seconds(saving_s);
            let saves = Spent::own(Polling::Never, Doing::OnCpu, time_s);
            activities[0].slices[0].spent.push(saves);
            let said = evaluate(&window);
            (test_window::found(said.clone()).len(), test_window::gaps(said).len())
        };
        assert_eq!(seen(9.5, 0.0), (1, 0));
        assert_eq!(seen(5.0, 5.0), (0, 0), "the thread has time to spare");
        assert_eq!(seen(9.5, 5.0), (0, 1), "whose time it is nobody knows");
    }

    #[test]
    fn without_an_idle_cpu_batches_are_what_helps() {
        let finding = redis(9.5, 6.65, 0.2).remove(0);
        assert!(finding.remedy.is_none() && finding.gain.unwrap().factor > 2.9);
    }

    #[test]
    fn who_sends_many_requests_at_a_time_has_less_to_gain() {
        let mut window = busy(9.5, 6.65, 0.2);
        let mut told = |reads| {
            let count = |by: u64| {
                let counts = [
                    ("total_connections_received", 0),
                    ("total_commands_processed", 16_000),
                    ("total_reads_processed", reads),
                ];
                Reading::Present(counts.map(|(name, n)| (name.to_owned(), 7 + by * n)).into())
            };
            window.start.databases[0].counters.told = count(0);
            window.end.databases[0].counters.told = count(1);
            test_window::found(evaluate(&window)).remove(0)
        };
        let one = told(16_000);
        // Of the 0.3 that are its own, 1.2 / 2.2 go into reading.
        let share = 0.7 + 0.3 * 1.2 / 2.2;
        assert!((one.tax.as_ref().unwrap().share - share).abs() < 1e-9);
        assert!((one.gain.unwrap().factor - 1.0 / (1.0 - share * 15.0 / 16.0)).abs() < 1e-9);
        let many = told(1000);
        assert!((many.gain.unwrap().factor - 1.0).abs() < 1e-9);
        assert!(many.fix.starts_with("use several shards"), "{}", many.fix);
    }
}
