//! `cpu-frequency`: a governor or a limit holds the CPUs below the frequency that they could have.

use crate::evidence;
use crate::model::accounting::{Demand, factor};
use crate::model::frequency::{Holds, Speed};
use crate::model::idleness::is_idle;
use crate::model::laws::Gains;
use crate::model::stall::gain::gains_of_share;
use crate::model::stall::{self, WORTH};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Interval, Reading, Severity, Tax, Window};

pub const RULE: Rule = Rule {
    id: "cpu-frequency",
    summary: "a governor or a limit holds the CPUs below the frequency that they could have",
    what: "A power-saving governor sees that a CPU is idle between two requests and chooses a low \
           frequency. Each request then computes for longer. A limit that was set for power or \
           heat also lowers the frequency of busy CPUs. Guests do not see the frequency of their \
           host.",
    method: "The rule compares the frequency at which the database's CPUs ran with the frequency \
             that they could have had. The tax is modelled: the difference times the database's \
             time on a CPU.",
    measured: "The rule takes the frequency of the database's CPUs while it ran, each weighted by \
               its busy time. Where the driver counts time_in_state, the rule reads that, and \
               assumes at best that busy time had the fastest part of it. Otherwise it samples \
               scaling_cur_freq, which x86 computes from APERF and MPERF. The tax is the part of \
               the database's time on CPU that the highest frequency without turbo would have \
               saved. The upper bound is the part that the highest frequency would have saved. The \
               tax may be zero: a faster CPU does not shorten waits for memory. So only trials can \
               tell the size, and the severity is low.",
    fix: "Set the governor performance (or the preference performance), or a higher \
          scaling_max_freq, for the database's CPUs. A higher frequency takes power, and other \
          CPUs of the same package may lose turbo.",
    sources: &[
        "kernel.org: admin-guide/pm/cpufreq, cpufreq-stats",
        "kernel.org: admin-guide/pm/intel_pstate, admin-guide/pm/amd-pstate",
        "scylladb/scylladb#1895, supabase/postgres#2069",
    ],
    privilege: "none",
    minimum_kernel: "4.3 (policies of their own)",
    cost: "five rounds of samples in a window, of 10 ms at most each",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| evaluate_one(window, pair))
}

fn evaluate_one(window: &Window, pair: &Pair) -> Reading<Option<Says>> {
    Speed::of(window, pair).and_then(|speed| {
        let Some(speed) = speed else { return Reading::Present(None) };
        let (part, held_by) = (speed.part(), speed.held_by.clone());
        let Some(held_by) = held_by.filter(|_| part.mid >= WORTH) else {
            return Reading::Present(None);
        };
        Demand::of(window, pair).map(|demand| {
            let share = demand.bound(part.scale(demand.on_cpu_s / demand.active_s));
            let is_idle = is_idle(pair).value().is_some_and(|idle| *idle);
            (share.mid >= WORTH && !is_idle).then(|| {
                let gains = gains_of_share(window, pair, share, share.map(factor));
                finding(&speed, &held_by, share, gains)
            })
        })
    })
}

fn finding(speed: &Speed, held_by: &Holds, share: Interval, gains: Gains) -> Says {
    let ghz = |khz: f64| format!("{:.1} GHz", khz / 1e6);
    let (what, fix) = match held_by {
        Holds::Governor(governor) => (
            format!("governor {governor}"),
            "set the governor performance on the database's CPUs, if power and heat allow",
        ),
        Holds::Limit(khz) => (
            format!("a limit of {}", ghz(*khz as f64)),
            "raise scaling_max_freq on the database's CPUs, if power and heat allow",
        ),
    };
    let source = speed.source;
    let mut evidence = vec![
        Evidence::new(&evidence::CPU_FREQUENCY, speed.khz.mid * 1e3, source),
        Evidence::new(&evidence::BASE_FREQUENCY, speed.base_khz * 1e3, "cpufreq"),
        Evidence::new(&evidence::MOST_FREQUENCY, speed.most_khz * 1e3, "cpuinfo_max_freq"),
    ];
    evidence.push(match held_by {
        Holds::Governor(governor) => {
            Evidence::new(&evidence::FREQUENCY_GOVERNOR, governor.clone(), "scaling_governor")
        }
        Holds::Limit(khz) => {
            Evidence::new(&evidence::FREQUENCY_LIMIT, *khz as f64 * 1e3, "scaling_max_freq")
        }
    });
    let method = format!("time on CPU x (1 - frequency by {source} over that without turbo)");
    Says::Found(Finding {
        evidence,
        tax: Some(Tax::new(share, method).with_model(true)),
        gain: Some(gains.throughput),
        latency_gain: Some(gains.latency),
        remedy: Some("cpu-governor".to_owned()),
        ..Finding::new(
            RULE.id,
            Severity::Low,
            format!("its CPUs ran at {} of {} ({what})", ghz(speed.khz.mid), ghz(speed.base_khz)),
            fix,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_frequency::{policy, sampled, window};
    use crate::test_window::{found, gaps};
    use untax_core::idle::CpuFreq;

    fn freq(window: &mut Window) -> &mut CpuFreq {
        let Reading::Present(freq) = &mut window.end.host.cpufreq else {
            panic!("cpufreq is there")
        };
        freq
    }

    #[test]
    fn a_governor_that_saves_power_is_found_by_samples() {
        let powersave = || [0, 1].map(|cpu| policy(cpu, "powersave", 3_600_000));
        let mut slow = window(&powersave(), 0.5);
        sampled(&mut slow, &[1_200_000, 1_200_000, 1_800_000]);
        let finding = found(evaluate(&slow)).remove(0);
        let tax = finding.tax.clone().unwrap();
        // The fastest sample over 2.4 GHz; the slowest over 3.6 GHz.
        assert!((tax.share - 0.25).abs() < 1e-9 && (tax.high - 2.0 / 3.0).abs() < 1e-9, "{tax:?}");
        assert!(tax.low.abs() < 1e-9 && tax.modelled && tax.is_unknown_in_size(), "{tax:?}");
        assert_eq!(finding.severity, Severity::Low);
        assert_eq!(finding.remedy.as_deref(), Some("cpu-governor"));
        assert_eq!(finding.summary, "its CPUs ran at 1.4 GHz of 2.4 GHz (governor powersave)");
        let gain = finding.gain.unwrap();
        assert!(
            (gain.low - 1.0).abs() < 1e-9 && (gain.factor - 4.0 / 3.0).abs() < 1e-9,
            "{gain:?}"
        );
        let mut fast = window(&powersave(), 0.5);
        sampled(&mut fast, &[2_400_000, 3_100_000]);
        assert!(found(evaluate(&fast)).is_empty(), "turbo is promised to nobody");
        let mut performance = window(&[0, 1].map(|cpu| policy(cpu, "performance", 3_600_000)), 0.5);
        sampled(&mut performance, &[1_200_000]);
        assert!(found(evaluate(&performance)).is_empty(), "heat, and nothing to set");
    }

    #[test]
    fn a_limit_that_is_reached_is_found_and_one_that_is_not_is_none() {
        let limited = || [0, 1].map(|cpu| policy(cpu, "performance", 1_800_000));
        let mut reached = window(&limited(), 1.0);
        sampled(&mut reached, &[1_790_000, 1_800_000]);
        let finding = found(evaluate(&reached)).remove(0);
        assert!(finding.summary.contains("a limit of 1.8 GHz"), "{}", finding.summary);
        let mut below = window(&limited(), 1.0);
        sampled(&mut below, &[1_200_000]);
        assert!(found(evaluate(&below)).is_empty());
    }

    #[test]
    fn time_at_each_frequency_counts_as_far_as_cpus_were_busy() {
        let at = |slow: u64, fast: u64| {
            Reading::Present(vec![(1_200_000, 1_000 + slow), (2_400_000, 1_000 + fast)])
        };
        let of = |busy: f64, slow: u64, fast: u64| {
            let mut window = window(&[0, 1].map(|cpu| policy(cpu, "ondemand", 3_600_000)), busy);
            freq(&mut window).policies[0].time_at = at(slow, fast);
            if let Reading::Present(start) = &mut window.start.host.cpufreq {
                start.policies[0].time_at = at(0, 0);
            }
            found(evaluate(&window))
        };
        // Slow for nine tenths of the window, and idle for so long.
        assert!(of(0.1, 900, 100).is_empty(), "what ran may have been fast");
        let tax = of(0.5, 900, 100).remove(0).tax.unwrap();
        // Of five tenths, one was fast: 1.44 of 2.4 GHz at best.
        assert!((tax.share - 0.4).abs() < 1e-9, "{tax:?}");
    }

    #[test]
    fn a_governor_that_changes_in_the_window_is_a_gap() {
        let mut changed = window(&[0, 1].map(|cpu| policy(cpu, "powersave", 3_600_000)), 0.5);
        sampled(&mut changed, &[1_200_000]);
        freq(&mut changed).policies[1].governor = Reading::Present("performance".to_owned());
        let why = gaps(evaluate(&changed)).remove(0);
        assert!(why.contains("policy1 changed from powersave to performance"), "{why}");
        freq(&mut changed).policies[1] = policy(1, "powersave", 2_000_000);
        let why = gaps(evaluate(&changed)).remove(0);
        assert!(why.contains("changed from 3600000 to 2000000 kHz"), "{why}");
        freq(&mut changed).policies.pop();
        let why = gaps(evaluate(&changed)).remove(0);
        assert!(why.contains("CPUs came or went"), "{why}");
    }

    #[test]
    fn what_is_not_told_is_a_gap() {
        let powersave = || [0, 1].map(|cpu| policy(cpu, "powersave", 3_600_000));
        let why = gaps(evaluate(&window(&powersave(), 0.5))).remove(0);
        assert!(why.contains("tells no frequency of policy0"), "{why}");
        let mut unknown = window(&powersave(), 0.5);
        sampled(&mut unknown, &[1_200_000]);
        freq(&mut unknown).policies[0].base_khz = Reading::absent("not told");
        let why = gaps(evaluate(&unknown)).remove(0);
        assert!(why.contains("frequency without turbo"), "{why}");
        let mut guest = window(&powersave(), 0.5);
        guest.end.host.cpufreq = Reading::absent("no cpufreq policy, as in most guests");
        let why = gaps(evaluate(&guest)).remove(0);
        assert!(why.contains("as in most guests"), "{why}");
    }
}
