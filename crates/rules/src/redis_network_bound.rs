//! `redis-network-bound`: one thread of Redis spends its time in the network stack.

use crate::accounting::{Demand, factor};
use crate::catalogue::Rule;
use crate::short_connections;
use crate::stall::{self, percent};
use untax_core::activity::Doing;
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Gain, Interval, Reading, Severity, Tax, Window};

pub const RULE: Rule = Rule {
    id: "redis-network-bound",
    summary: "the one thread that runs commands spends most of its time reading and writing sockets",
    what: "Redis runs commands on one thread, and by default that thread also reads every request \
           from its socket and writes every answer to it. With small requests one by one, two \
           thirds of its time go into the kernel's network stack while other CPUs idle.",
    measured: "Time in the kernel (stime of /proc/PID/stat) over time on CPU, less what \
               short-connections charges, found when the database keeps a CPU busy for 80 % of the \
               window and half of that is in the kernel. The tax is that share. \
               The gain supposes requests in large batches, which leave hardly any of it; its lower \
               bound is none, for threads that no CPU is idle for.",
    fix: "Pipeline requests in the client; io-threads 2 to 4 when CPUs are idle; several shards.",
    sources: &["redis.io: redis.conf, io-threads", "redis.io: pipelining"],
    privilege: "none",
    minimum_kernel: "2.6",
    cost: "files that are read anyway",
    evaluate,
};

/// Of one CPU: below, the thread has time to spare and nothing waits for it.
const BUSY: f64 = 0.8;

/// Below, commands cost more than sockets.
const KERNEL: f64 = 0.5;

/// A gain below this is no reason to change anything.
const WORTH_GAIN: f64 = 1.1;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| {
        if pair.end.engine != "redis" {
            return Reading::Present(None);
        }
        let system =
            pair.growth("time in the kernel", |d| d.counters.system_s.clone().map(|s| s.0));
        system.and_then(|system_s| {
            // An idle database has no demand: nothing to say, and no gap either.
            let demand = Demand::of(window, pair).into_value();
            Reading::Present(demand.and_then(|demand| found(window, pair, &demand, system_s)))
        })
    })
}

fn found(window: &Window, pair: &Pair, demand: &Demand, system_s: f64) -> Option<Says> {
    let in_clock_ticks = 0.01 / pair.seconds.max(0.01);
    // What frees memory is told apart.
    let activity = pair.activity.value();
    let freeing_s = activity.map_or(0.0, |activity| activity.doing(&[Doing::ReclaimOnCpu]).0);
    let kernel = ((system_s - freeing_s) / demand.on_cpu_s).min(1.0);
    let kernel = Interval::new(kernel - in_clock_ticks, kernel, kernel + in_clock_ticks);
    let connecting = short_connections::charged_to_loop(window, pair);
    let kernel = kernel.minus(connecting.unwrap_or(Interval::exact(0.0))).clamp(0.0, 1.0);
    if demand.on_cpu_s < BUSY * pair.seconds || kernel.mid < KERNEL {
        return None;
    }
    let share = kernel.scale(demand.on_cpu_s / demand.active_s);
    let most = (demand.capacity_s / demand.busy_s).max(1.0);
    let gain = factor(share.mid);
    let threads = gain.min(most);
    let idle = threads >= WORTH_GAIN;
    Some(Says::Found(Finding {
        rule: RULE.id.to_owned(),
        severity: Severity::Medium,
        summary: format!(
            "{} of its time on CPU in the kernel's network stack",
            percent(kernel.mid)
        ),
        fix: if idle {
            format!("pipeline requests, or set io-threads: idle CPUs allow {threads:.1}x")
        } else {
            "pipeline requests; no CPU is idle that io-threads could use".to_owned()
        },
        evidence: vec![
            Evidence::new("in the kernel", system_s, "s", "stime, /proc/PID/stat"),
            Evidence::new("on CPU", demand.on_cpu_s, "s", "scheduler"),
        ],
        tax: Some(Tax::new(
            share,
            "time in the kernel, counted in clock ticks, less what connections are charged and what \
             freed memory, over active time",
        )),
        gain: Some(Gain::from(Interval::new(1.0, gain, factor(share.high)))),
        remedy: idle.then(|| "redis-io-threads".to_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::Seconds;

    fn redis(on_cpu_s: f64, system_s: f64, idle_s: f64) -> Vec<Finding> {
        let mut window = test_window::postgres();
        for (snapshot, by) in [(&mut window.start, 0.0), (&mut window.end, 1.0)] {
            let database = &mut snapshot.databases[0];
            database.engine = "redis".to_owned();
            database.counters.on_cpu_s = Reading::Present(Seconds(on_cpu_s * by));
            database.counters.runnable_s = Reading::Present(Seconds(0.0));
            database.counters.system_s = Reading::Present(Seconds(system_s * by));
            if let Reading::Present(time) = &mut snapshot.host.cpu_time {
                time.busy_s = Seconds(on_cpu_s * by);
                time.idle_s = Seconds(idle_s * by);
            }
        }
        test_window::found(evaluate(&window))
    }

    #[test]
    fn a_busy_thread_in_the_kernel_is_bound_by_the_network() {
        let findings = redis(9.5, 6.65, 10.5);
        assert!((findings[0].tax.as_ref().unwrap().share - 0.7).abs() < 1e-9);
        assert_eq!(findings[0].severity, Severity::Medium);
        assert!(redis(5.0, 4.0, 15.0).is_empty(), "it has time to spare");
        assert!(redis(9.5, 2.0, 10.5).is_empty(), "commands cost more");
        // Threads take it as far as a CPU is idle, batches all of it.
        assert!((findings[0].gain.unwrap().factor - 1.0 / 0.3).abs() < 1e-9);
        assert!(findings[0].fix.ends_with("allow 2.1x"), "{}", findings[0].fix);
    }

    #[test]
    fn without_an_idle_cpu_batches_are_what_helps() {
        let finding = redis(9.5, 6.65, 0.2).remove(0);
        assert!(finding.remedy.is_none() && finding.gain.unwrap().factor > 3.0);
    }
}
