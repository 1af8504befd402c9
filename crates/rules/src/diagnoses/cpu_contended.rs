//! `cpu-contended`: other processes of the machine take CPUs that the database waits for.

use crate::evidence;
use crate::model::accounting::{neighbours, others};
use crate::model::contention::Contention;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::model::thrashing::Thrashing;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::window::{Other, Pair};
use untax_core::{Diagnosis, Evidence, Interval, Reading, Window};

pub const RULE: Rule = Rule {
    id: "cpu-contended",
    summary: "other processes have the CPUs that the database's threads are waiting for",
    what: "A thread that is ready to run waits in a run queue while others have the CPUs. CPU time \
           of the database itself, and of the clients that it works for, is the load. CPU time of \
           backups, batch jobs, agents and other tenants is taken from the database.",
    method: "The tax is the traced time that threads waited for a CPU on which other programs ran, \
             as a share of active time.",
    measured: "The scheduler's events show how long threads were ready to run while their run \
               queue was not throttled. Neighbours are charged with a part of this waiting: their \
               CPU time divided by the CPU time of the whole machine. Some engines serve all \
               clients in one thread. Where this thread and each client can have a CPU, the part \
               is the number of CPUs that neighbours kept busy. A process that ended in the window \
               counts with the process that started it. Where the database may use only some CPUs, \
               only the time of these CPUs counts. A neighbour is then charged as if it used all \
               of its own allowed CPUs equally. Processes that send requests to the database, and \
               processes that started them, are its clients, not neighbours. Clients behind a \
               pooler on this machine cannot be seen; the lower bound is then zero. CPU time that \
               a neighbour spends to read again what its own memory limit evicts is charged by \
               neighbour-reclaim. The rule gives no gain where a few clients alone would leave \
               CPUs idle and these CPUs sleep. Each request would then wait for a CPU to wake up; \
               the neighbours prevent this wait.",
    fix: "Move the neighbours away, lower their weight (cpu.weight, CPUWeight=, requests.cpu), or \
          keep them off the database's CPUs (cpuset).",
    sources: &[
        "kernel.org: scheduler/sched-stats, run_delay",
        "kernel.org: admin-guide/cgroup-v2, cpu.weight",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| evaluate_one(window, pair))
}

fn evaluate_one(window: &Window, pair: &Pair) -> Reading<Option<Says>> {
    Contention::of(window, pair).map(|contention| {
        let Contention { stall, part, taken_s } = contention?;
        // What a neighbour computes because its memory limit is too small is that limit's cost.
        let thrashing = Thrashing::of(window, pair);
        let rest = 1.0 - thrashing.as_ref().map_or(0.0, |thrashing| thrashing.cpu.mid);
        let stall = stall.times(part * rest).with_freed_time(taken_s * rest);
        let share = stall.share;
        let stall = match pooler(window, pair) {
            Some(_) => stall.with_share(Interval::new(0.0, share.mid, share.high)),
            None => stall,
        };
        (stall.share.mid >= WORTH).then(|| finding(&stall, window, pair, thrashing.as_ref()))
    })
}

/// Programs that pass on what others ask: who these are the database cannot see.
const POOLERS: [&str; 8] =
    ["pgbouncer", "odyssey", "pgcat", "pgpool", "proxysql", "maxscale", "haproxy", "envoy"];

/// The one among its clients on this machine, if any.
fn pooler<'a>(window: &'a Window, pair: &Pair) -> Option<&'a Other> {
    let clients = pair.activity.value().map_or(&[][..], |activity| &activity.clients);
    let mut clients = others(window, pair).filter(|other| clients.contains(&other.pid));
    clients.find(|client| POOLERS.contains(&client.name.as_str()))
}

/// A neighbour that had less than this of the CPUs is not named: to move it away brings nothing.
const LEAST_NAMED_CPUS: f64 = 0.05;

fn finding(stall: &Stall, window: &Window, pair: &Pair, thrashing: Option<&Thrashing>) -> Says {
    let mut neighbours = neighbours(window, pair);
    if let Some(thrashing) = thrashing {
        for (other, taken_s) in &mut neighbours {
            *taken_s = thrashing.rest_s(other, *taken_s);
        }
        neighbours.sort_by(|a, b| b.1.total_cmp(&a.1));
    }
    let cpus = |taken_s: f64| taken_s / pair.seconds.max(f64::EPSILON);
    let mut by_name: Vec<(&str, f64)> = Vec::new();
    for (other, taken_s) in &neighbours {
        match by_name.iter_mut().find(|(name, _)| *name == other.name) {
            Some((_, sum)) => *sum += cpus(*taken_s),
            None => by_name.push((&other.name, cpus(*taken_s))),
        }
    }
    by_name.sort_by(|a, b| b.1.total_cmp(&a.1));
    by_name.retain(|(_, cpus)| *cpus >= LEAST_NAMED_CPUS);
    let named = by_name.iter().take(3).map(|(name, cpus)| format!("{name} ({cpus:.1} CPUs)"));
    let mut named: Vec<String> = named.collect();
    if named.is_empty() {
        named.push(format!("processes of less than {LEAST_NAMED_CPUS} CPUs each"));
    }
    let neighbour = |(other, taken_s): &(&Other, f64)| {
        let cgroup = other.cgroup.value().map_or("", String::as_str);
        let neighbour = format!("{} (pid {}) in {cgroup}", other.name, other.pid);
        Evidence::new(&evidence::NEIGHBOUR_CPUS, cpus(*taken_s), "/proc/PID/stat").of(&neighbour)
    };
    let is_named =
        |(other, _): &&(&Other, f64)| by_name.iter().any(|(name, _)| *name == other.name);
    let mut evidence: Vec<Evidence> =
        neighbours.iter().filter(is_named).take(5).map(neighbour).collect();
    evidence.extend(
        pooler(window, pair).map(|pooler| {
            Evidence::new(&evidence::POOLER, pooler.name.clone(), "scheduler's events")
        }),
    );
    stall::finding(
        RULE.id,
        stall,
        Words {
            summary: format!(
                "{} of its time waiting for CPUs used by {}",
                percent(stall.share.mid),
                named.join(", ")
            ),
            fix: "move these neighbours, lower their CPU weight, or keep them off its CPUs"
                .to_owned(),
            evidence,
            method:
                "time that threads were ready to run and not throttled, traced, x the neighbours' \
                 part of the machine's processor time, over active time"
                    .to_owned(),
            remedy: Some("cpu-weight"),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found};
    use untax_core::Seconds;
    use untax_core::activity::Doing;
    use untax_core::database::Model;

    fn contended(names: &[(&str, u32, f64)]) -> Window {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Contended, 15.0)]);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].clients = vec![77];
        }
        let other = |(name, pid, cpu_s): &(&str, u32, f64)| Other {
            cgroup: Reading::Present("/batch".to_owned()),
            ..Other::unknown(*pid, name, Seconds(*cpu_s), "not read")
        };
        window.others = names.iter().map(other).collect();
        window
    }

    #[test]
    fn neighbours_are_charged_for_what_they_ran() {
        let window =
            contended(&[("stress-ng", 50, 6.0), ("stress-ng", 51, 4.0), ("pgbench", 77, 5.0)]);
        let findings = found(evaluate(&window));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        // Half of 20 busy seconds: half of three quarters.
        assert!((finding.tax.as_ref().unwrap().share - 0.375).abs() < 1e-9);
        assert!(finding.summary.contains("stress-ng (1.0 CPUs)"));
        assert!(!finding.summary.contains("pgbench"), "a client is the load itself");
        // 10 of 20 seconds become free: at most twice as much.
        assert!((1.5..=2.0).contains(&finding.gain.unwrap().factor));
    }

    #[test]
    fn who_had_next_to_nothing_is_not_named() {
        let tell = |names| found(evaluate(&contended(names))).remove(0);
        let some = tell(&[("batch", 50, 9.0), ("cron", 51, 0.4)]);
        assert!(some.summary.contains("batch (0.9 CPUs)") && !some.summary.contains("cron"));
        assert!(!some.evidence.iter().any(|e| e.name.contains("cron")), "{:?}", some.evidence);
        let many: Vec<(&str, u32, f64)> = (50..80).map(|pid| ("php", pid, 0.3)).collect();
        assert!(tell(&many).summary.contains("php (0.9 CPUs)"), "together they had much");
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let few: Vec<(&str, u32, f64)> = (50..).zip(names).map(|(p, n)| (n, p, 0.45)).collect();
        let few = tell(&few);
        assert!(few.summary.contains("processes of less than 0.05 CPUs each"), "{}", few.summary);
    }

    #[test]
    fn a_loop_with_a_cpu_for_itself_and_its_client_waits_for_neighbours_alone() {
        let mut window = contended(&[("batch", 50, 5.0), ("client", 77, 5.0)]);
        window.end.databases[0].model = Model::Loop;
        let trace = [(Doing::OnCpu, 4.0), (Doing::Contended, 4.0), (Doing::Poll, 2.0)];
        test_window::trace(&mut window, &trace);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].clients = vec![77];
        }
        window.others[1].waited_s = Some(Seconds(5.0));
        let finding = found(evaluate(&window)).remove(0);
        // Half a CPU of the two was the neighbour's.
        assert!((finding.tax.unwrap().share - 0.25).abs() < 1e-9);
        // 10 s become 4 + 2, and what of its waiting is for those that go on using 6 of 20 s.
        let gain = finding.gain.unwrap();
        assert!((gain.factor - 10.0 / 7.2).abs() < 1e-9, "{gain:?}");
        window.others[1].threads = 2;
        assert!((found(evaluate(&window))[0].tax.as_ref().unwrap().share - 0.125).abs() < 1e-9);
    }

    #[test]
    fn another_database_is_a_neighbour_and_its_own_processes_are_none() {
        let own = test_window::postgres().end.databases[0].pids[0];
        let window = contended(&[("postgres", own, 9.0), ("mariadbd", 50, 10.0)]);
        let finding = found(evaluate(&window)).remove(0);
        assert!((finding.tax.unwrap().share - 0.375).abs() < 1e-9);
        assert!(!finding.summary.contains("postgres"), "{}", finding.summary);
    }

    #[test]
    fn who_asks_by_way_of_a_pooler_may_be_no_neighbour() {
        let finding = |client| {
            found(evaluate(&contended(&[("gunicorn", 50, 10.0), (client, 77, 1.0)]))).remove(0)
        };
        let tax = finding("pgbouncer").tax.unwrap();
        assert!((tax.share - 0.375).abs() < 1e-9 && tax.low.abs() < 1e-9);
        assert!(finding("pgbouncer").evidence.iter().any(|e| e.name.contains("a pooler")));
        assert!(finding("pgbench").tax.unwrap().low > 0.3);
    }

    #[test]
    fn no_gain_is_promised_where_cpus_would_sleep() {
        let mut window = contended(&[("batch", 50, 10.0)]);
        let gain = |window: &Window| found(evaluate(window)).remove(0).gain;
        assert!(gain(&window).is_some(), "nothing is known of idle CPUs");
        window.end.host.virtualization = Reading::Present("kvm".to_owned());
        assert_eq!(gain(&window), None, "few threads for the CPUs");
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Contended, 195.0)]);
        assert!(gain(&window).is_some(), "CPUs stay busy");
    }

    #[test]
    fn its_own_load_is_no_neighbour() {
        assert!(found(evaluate(&contended(&[("pgbench", 77, 12.0)]))).is_empty());
        assert!(found(evaluate(&contended(&[]))).is_empty());
    }
}
