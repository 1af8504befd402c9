//! `vm-steal`: the hypervisor runs other guests on the CPUs meanwhile.

use crate::evidence;
use crate::model::accounting::{Demand, factor};
use crate::model::cpus;
use crate::model::stall::gain::gains_of_share;
use crate::model::stall::{self, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Interval, Reading, Tax, Window};

pub const RULE: Rule = Rule {
    id: "vm-steal",
    summary: "the hypervisor takes CPUs away from this machine while it wants to run",
    what: "A virtual CPU that is ready to run waits while the hypervisor runs other guests on the \
           physical one. From inside, everything only looks slower: a query takes more time on \
           CPU, and every wait behind it grows.",
    method: "The tax is the stolen part of all CPU time (/proc/stat), applied to the time of the \
             database on a CPU, as a share of active time.",
    measured: "The stolen part is steal of /proc/stat over busy and stolen time of all CPUs. The \
               rule applies it to the database's time on CPU; waiting for a CPU is charged in \
               proportion. Other rules leave stolen time out of the CPU time that they charge. The \
               gain assumes that all processes on these CPUs, clients included, get their part \
               back. The gain's lower bound assumes that these CPUs are otherwise idle. Some \
               hypervisors do not report steal to their guests: the rule then finds nothing.",
    fix: "Use dedicated CPUs or a less crowded host. On your own hypervisor, use fewer virtual \
          CPUs for each physical one, or pin them.",
    sources: &[
        "kernel.org: filesystems/proc, 1.8 /proc/stat, steal",
        "kernel.org: virt/kvm/x86/msr",
    ],
    privilege: "none",
    minimum_kernel: "2.6.11",
    cost: "one file",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// Less than this share of the CPUs is what the hypervisor itself needs now and then.
const WORTH: f64 = 0.01;

/// `/proc/stat` counts in ticks of a hundredth of a second.
const TICK_S: f64 = 0.01;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| evaluate_one(window, pair))
}

fn evaluate_one(window: &Window, pair: &Pair) -> Reading<Option<Says>> {
    cpus::times(window, pair).and_then(|[start, end]| {
        let steal_s = (end.steal_s - start.steal_s).0.max(0.0);
        let wanted_s = (end.busy_s - start.busy_s).0 + steal_s;
        let stolen = if wanted_s > 0.0 { steal_s / wanted_s } else { 0.0 };
        if stolen < WORTH {
            return Reading::Present(None);
        }
        Demand::of(window, pair).map(|demand| {
            let ticks = [(steal_s - TICK_S).max(0.0), steal_s, steal_s + TICK_S];
            let [low, mid, high] = ticks.map(|steal_s| steal_s / wanted_s);
            let part = Interval::new(low, mid, high.min(1.0));
            let wanted = (demand.on_cpu_s + demand.contended_s) / demand.active_s;
            let share = demand.bound(part.scale(wanted));
            // All that was stolen of anybody comes back, where CPUs are what everybody waits for.
            let most = factor(share.mid);
            let mid = factor(steal_s / demand.occupied_s()).min(most);
            let taken_s = part.scale(demand.on_cpu_s);
            let low = factor(taken_s.low / (demand.capacity_s + demand.stolen_s)).min(mid);
            let factors = Interval::new(low, mid, factor(share.high));
            let gains = gains_of_share(window, pair, share, factors);
            Some(Says::Found(Finding {
                evidence: vec![
                    Evidence::new(&evidence::STOLEN, steal_s, "/proc/stat, steal"),
                    Evidence::new(&evidence::STOLEN_SHARE, stolen, "/proc/stat"),
                ],
                tax: Some(Tax::new(
                    share,
                    "stolen share of the CPUs x its time on CPU and waiting for one",
                )),
                gain: Some(gains.throughput),
                latency_gain: Some(gains.latency),
                ..Finding::new(
                    RULE.id,
                    stall::severity(share),
                    format!("the hypervisor took {} of the CPU time wanted", percent(stolen)),
                    "use dedicated CPUs, or a less crowded host",
                )
            }))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::find;
    use crate::test_window::{self, found};
    use untax_core::activity::Doing;
    use untax_core::window::Other;
    use untax_core::{Seconds, Severity};

    fn stolen(seconds: f64) -> Window {
        let mut window = test_window::postgres();
        if let Reading::Present(time) = &mut window.end.host.cpu_time {
            time.steal_s = time.steal_s + Seconds(seconds);
        }
        window
    }

    #[test]
    fn steal_is_a_tax_on_time_on_cpu() {
        let findings = found(evaluate(&stolen(5.0)));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        // A fifth of 25 seconds wanted.
        assert!(finding.summary.contains("20 %"), "{}", finding.summary);
        let tax = finding.tax.as_ref().unwrap();
        assert!(tax.share > 0.1 && tax.share < 0.3, "{tax:?}");
        // As long as others are served by the same CPUs: of ten seconds' own work a fifth alone.
        let gain = finding.gain.unwrap();
        assert!((gain.factor - 1.0 / (1.0 - tax.share.min(0.2))).abs() < 1e-9, "{gain:?}");
        assert!(gain.low < gain.factor && gain.factor <= gain.high, "{gain:?}");
    }

    #[test]
    fn a_tick_of_an_idle_machine_is_hardly_worth_a_word() {
        let mut window = stolen(0.02);
        for snapshot in [&mut window.start, &mut window.end] {
            if let Reading::Present(time) = &mut snapshot.host.cpu_time {
                time.busy_s = Seconds(time.busy_s.0 * 0.02);
            }
        }
        let trace = [(Doing::OnCpu, 0.1), (Doing::Disk, 9.0)];
        test_window::trace(&mut window, &trace);
        let findings = found(evaluate(&window));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        let tax = finding.tax.as_ref().unwrap();
        assert!(tax.low < tax.share && tax.share < tax.high, "{tax:?}");
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn what_is_stolen_of_connections_is_not_theirs_too() {
        let window = |times: &[(Doing, f64)], connecting_s: f64| {
            let mut window = test_window::postgres();
            window.calibration = Reading::Absent("not measured".to_owned());
            test_window::trace(&mut window, times);
            if let Reading::Present(activities) = &mut window.activity {
                activities[0].slices[0].connecting_s = Seconds(connecting_s);
                activities[0].started = 2000;
                activities[0].requests_seen = true;
            }
            window
        };
        let alone = window(&[(Doing::OnCpu, 10.0)], 9.0);
        test_window::about(
            [0.9, 0.45, 0.5],
            test_window::beside_steal(find("short-connections").unwrap(), alone),
        );
        let times = [(Doing::OnCpu, 2.0), (Doing::Contended, 8.0)];
        let mut beside = window(&times, 2.0);
        beside.others = vec![Other::unknown(99, "batch", Seconds(10.0), "not read")];
        // Of 8 s they had half, and a quarter where as much was stolen.
        let connecting =
            test_window::beside_steal(find("short-connections").unwrap(), beside.clone());
        let neighbours = test_window::beside_steal(find("cpu-contended").unwrap(), beside);
        test_window::about([0.6, 0.3, 0.5], connecting);
        test_window::about([0.4, 0.2, 0.5], neighbours);
    }

    #[test]
    fn none_is_none() {
        assert!(found(evaluate(&stolen(0.0))).is_empty());
        assert!(found(evaluate(&stolen(0.1))).is_empty());
    }
}
