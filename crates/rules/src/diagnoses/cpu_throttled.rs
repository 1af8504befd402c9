//! `cpu-throttled`: a CPU limit holds the database back.

use crate::evidence;
use crate::model::held_up::{self, HeldUp, is_untraced};
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::Cause;
use untax_core::database::{CpuLimit, wanted_cpus};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Evidence, Finding, Reading, Window};

pub const RULE: Rule = Rule {
    id: "cpu-throttled",
    summary: "a CPU limit of its control group holds the database back",
    what: "A CPU limit gives a group a quota of CPU time for each period, usually 100 ms. Many \
           backends use up the quota within a few milliseconds. Then all of them stop until the \
           next period, including backends that hold locks. Nothing looks busy: the average CPU \
           use is at the limit or far below it. Yet transactions wait for tens of milliseconds \
           again and again.",
    method: "The tax is the traced time that threads were ready to run while a CPU limit stopped \
             them, as a share of active time.",
    measured: "The scheduler's events show how long each thread was ready to run while its run \
               queue was throttled. The tax is this time divided by the active time of the \
               database; waiting for a CPU that others had is kept apart. The interval comes from \
               the slices of the window. Both run_delay of schedstat and CPU pressure (PSI) mix \
               the two kinds of waiting; throttled_time of cpu.stat counts CPUs, not threads. \
               Without tracing, the rule goes by the throttled periods that cpu.stat counts. The \
               tax is then unmeasured. The severity then follows from PSI (full): the share of the \
               window in which every task of the group with work to do was stalled.",
    fix: "Raise or remove the limit (cpu.max, CPUQuota=, limits.cpu of the pod). Also raise limits \
          of the groups above that are lower than the new one, the outermost first. Keep the \
          request or weight, which shares CPUs without stopping anyone. Or give the pod whole CPUs \
          (static CPU manager policy).",
    sources: &[
        "kernel.org: scheduler/sched-bwc",
        "kernel.org: admin-guide/cgroup-v2, cpu.max, cpu.stat",
        "kubernetes/enhancements#5062: CPU pressure holds throttling",
    ],
    privilege: "none; root (CAP_BPF and CAP_PERFMON) for its tax",
    minimum_kernel: "3.2 (cpu.stat); 5.15 (bpf_task_pt_regs) for its tax",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<untax_core::Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| evaluate_one(window, pair));
    held_up::with_reasons(window, found)
}

fn evaluate_one(window: &Window, pair: &Pair) -> Reading<Option<Says>> {
    let limits = pair.end.cgroup.as_ref().and_then(|cgroup| cgroup.cpu.as_ref());
    // Without any limit there is nothing to measure, traced or not.
    if limits.value().is_some_and(|limits| limits.is_empty()) {
        return Reading::Present(None);
    }
    if is_untraced(pair)
        && let Some(finding) = limits.value().and_then(|limits| untraced(window, pair, limits))
    {
        return Reading::Present(Some(Says::Found(finding)));
    }
    let model = pair.end.model;
    Stall::of(window, pair, |spent| spent.goes_to(Cause::Throttled, model)).and_then(|stall| {
        let Some(stall) = stall else { return Reading::Present(None) };
        if stall.share.mid > 0.0 {
            return Reading::Present(Some(finding(window, stall, pair)));
        }
        // Not only the tightest one stops: others have a part of the groups above.
        let limits = limits.value().into_iter().flat_map(|limits| limits.iter());
        match limits.filter_map(|limit| throttled_periods(pair, limit)).max_by(f64::total_cmp) {
            Some(periods) if periods > 0.0 => Reading::Absent(format!(
                "its control group was stopped in {periods:.0} periods, and tracing saw nothing of it: \
                 no traced slice overlapped these periods, another process of the group was stopped, or this kernel does not report it"
            )),
            _ => Reading::Present(None),
        }
    })
}

fn finding(window: &Window, stall: Stall, pair: &Pair) -> Says {
    let limits = limits_in_the_way(window, pair, stall.share.mid);
    let stall = stall.with_limit_lifted(next_limit(pair, &limits));
    let named = limits.iter().map(|limit| format!("{:.2} CPUs of {}", limit.cpus, limit.cgroup));
    let named = match &named.collect::<Vec<_>>()[..] {
        [] => "a CPU limit".to_owned(),
        [one] => format!("the limit of {one}"),
        several => format!("the limits of {}", several.join(" and ")),
    };
    stall::finding(
        RULE.id,
        &stall,
        Words {
            summary: format!("{} of its time stopped by {named}", percent(stall.share.mid)),
            fix: fix(&limits),
            evidence: limits.iter().flat_map(|limit| evidence(pair, limit)).collect(),
            method:
                "time that threads were ready to run on a throttled run queue, traced, divided \
                     by active time"
                    .to_owned(),
            remedy: Some("cpu-limit"),
        },
    )
}

/// What the kernel counts of the limit that stops its group in most periods.
fn untraced(window: &Window, pair: &Pair, limits: &[CpuLimit]) -> Option<Finding> {
    let stopped = |limit| {
        let stopped = throttled_periods(pair, limit)?;
        let periods = counter_growth(pair, limit, |limit| &limit.periods)?;
        Some((limit, stopped, stopped / periods.max(stopped).max(1.0)))
    };
    let most = limits.iter().filter_map(stopped).max_by(|a, b| a.2.total_cmp(&b.2));
    let (limit, stopped, part) = most.filter(|(_, _, part)| *part >= WORTH)?;
    // Neighbours hold tasks up too, and a limit no longer than the periods in which it was met.
    let stopped_s = stopped * limit.period_s.0;
    let held = HeldUp::for_cpu(window, pair).at_most(stopped_s / pair.seconds);
    Some(Finding {
        evidence: evidence(pair, limit).into_iter().chain(held.evidence()).collect(),
        remedy: Some("cpu-limit".to_owned()),
        ..Finding::new(
            RULE.id,
            held.severity(),
            format!(
                "stopped in {} of all periods by the limit of {:.2} CPUs of {}",
                percent(part),
                limit.cpus,
                limit.cgroup
            ),
            fix(&[limit]),
        )
    })
}

fn fix(limits: &[&CpuLimit]) -> String {
    let names: Vec<&str> = limits.iter().map(|limit| limit.cgroup.as_str()).collect();
    let which = match names[..] {
        [] | [_] => "the CPU limit".to_owned(),
        _ => format!("the CPU limits of {}", names.join(", then ")),
    };
    format!("raise or remove {which} (cpu.max, CPUQuota=, limits.cpu), keep the weight")
}

/// Every limit on the way that is lower than what is wanted, the outermost first: the next one stops the
/// database as soon as the lowest is gone.
fn limits_in_the_way<'a>(window: &Window, pair: &Pair<'a>, lost: f64) -> Vec<&'a CpuLimit> {
    let limits = pair.end.cgroup.value().and_then(|cgroup| cgroup.cpu.value());
    let limits = || limits.into_iter().flatten();
    let lowest = limits().map(|limit| limit.cpus).min_by(f64::total_cmp);
    let all = window.end.host.cpu.value().map_or(f64::INFINITY, |cpu| f64::from(cpu.logical));
    let wanted = lowest.map_or(0.0, |lowest| wanted_cpus(lowest, lost)).min(all);
    limits().rev().filter(|limit| limit.cpus < wanted).collect()
}

/// What is left of the lowest limit that is not in the way.
fn next_limit(pair: &Pair, in_the_way: &[&CpuLimit]) -> Option<f64> {
    let limits = pair.end.cgroup.value().and_then(|cgroup| cgroup.cpu.value());
    let is_left = |limit: &&CpuLimit| !in_the_way.iter().any(|gone| gone.cgroup == limit.cgroup);
    let left = limits.into_iter().flatten().filter(is_left).map(|limit| limit.cpus);
    left.min_by(f64::total_cmp)
}

fn evidence(pair: &Pair, limit: &CpuLimit) -> Vec<Evidence> {
    let source = format!("cpu.max or cpu.cfs_quota_us of {}", limit.cgroup);
    let mut evidence = vec![
        Evidence::new(&evidence::CPU_LIMIT, limit.cpus, source),
        Evidence::new(&evidence::CPU_PERIOD, limit.period_s.0, "the same"),
    ];
    let periods = counter_growth(pair, limit, |limit| &limit.periods);
    if let Some((periods, stopped)) = periods.zip(throttled_periods(pair, limit)) {
        evidence.push(Evidence::new(&evidence::CPU_PERIODS, periods, "cpu.stat nr_periods"));
        evidence.push(Evidence::new(
            &evidence::THROTTLED_PERIODS,
            stopped,
            "cpu.stat nr_throttled",
        ));
    }
    evidence
}

/// In how many periods of the window the limit stopped its group.
fn throttled_periods(pair: &Pair, limit: &CpuLimit) -> Option<f64> {
    counter_growth(pair, limit, |limit| &limit.throttled_periods)
}

fn counter_growth(
    pair: &Pair,
    limit: &CpuLimit,
    read: fn(&CpuLimit) -> &Reading<u64>,
) -> Option<f64> {
    let grown = pair.growth("cpu.stat", |database| {
        let limits = database.cgroup.as_ref().and_then(|cgroup| cgroup.cpu.clone());
        limits.and_then(|limits| match limits.iter().find(|found| found.cgroup == limit.cgroup) {
            Some(found) => read(found).as_ref().map(|count| *count as f64),
            None => Reading::Absent("the limit is new".to_owned()),
        })
    });
    grown.into_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found};
    use untax_core::activity::Doing;
    use untax_core::{Bytes, Severity};

    fn limit(throttled_periods: u64) -> CpuLimit {
        CpuLimit {
            cgroup: "/db".to_owned(),
            cpus: 0.5,
            period_s: untax_core::Seconds(0.1),
            periods: Reading::Present(throttled_periods + 5),
            throttled_periods: Reading::Present(throttled_periods),
        }
    }

    fn throttled(seconds: f64) -> Window {
        let mut window = test_window::postgres();
        let limited = |count| Reading::Present(vec![limit(count)]);
        for (snapshot, count) in [(&mut window.start, 10), (&mut window.end, 100)] {
            let mut groups =
                test_window::cgroup(vec![test_window::limit("/db", Bytes(1), Bytes(0))])
                    .into_value()
                    .unwrap();
            groups.cpu = limited(count);
            snapshot.databases[0].cgroup = Reading::Present(groups);
        }
        test_window::trace(
            &mut window,
            &[(Doing::OnCpu, 5.0), (Doing::Throttled, seconds), (Doing::Poll, 10.0)],
        );
        window
    }

    #[test]
    fn throttled_time_is_the_tax() {
        let findings = found(evaluate(&throttled(15.0)));
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        let tax = finding.tax.as_ref().unwrap();
        assert!((tax.share - 0.75).abs() < 1e-9);
        assert_eq!(finding.severity, Severity::High);
        // The clients' own time between requests stays: (20 + 10) / (5 + 10) at most. The machine of the
        // test window is saturated: if its others want as much as now, nothing is to be gained.
        let gain = finding.gain.unwrap();
        assert!((1.8..2.0).contains(&gain.factor) && (gain.low - 1.0).abs() < 1e-9, "{gain:?}");
        assert!(
            gain.high <= 2.0 && finding.latency_gain.unwrap().factor > gain.high,
            "{finding:?}"
        );
        assert!(finding.evidence.iter().any(|e| e.name == "throttled"));
    }

    #[test]
    fn every_limit_below_what_is_wanted_is_named_the_outermost_first() {
        let mut window = throttled(15.0);
        for snapshot in [&mut window.start, &mut window.end] {
            let Reading::Present(cgroup) = &mut snapshot.databases[0].cgroup else { panic!() };
            let Reading::Present(limits) = &mut cgroup.cpu else { panic!() };
            // Three quarters lost: 0.5 CPUs were a quarter of what it wants.
            let group = |name: &str, cpus| CpuLimit { cgroup: name.to_owned(), cpus, ..limit(0) };
            limits.extend([group("/rep", 0.5), group("/all", 2.9), group("/", 3.0)]);
        }
        let finding = found(evaluate(&window)).remove(0);
        let (outer, inner) = (finding.summary.find("/rep"), finding.summary.find("/db"));
        assert!(outer.is_some() && outer < inner, "{}", finding.summary);
        assert!(!finding.summary.contains("3.00 CPUs"), "{}", finding.summary);
        assert!(finding.fix.contains("/rep, then /db"), "{}", finding.fix);
    }

    #[test]
    fn no_limit_no_finding_and_no_gap() {
        assert!(
            evaluate(&test_window::unread()).iter().all(|d| matches!(d.says, Says::Unmeasured(_)))
        );
        let mut window = throttled(5.0);
        for snapshot in [&mut window.start, &mut window.end] {
            if let Reading::Present(cgroup) = &mut snapshot.databases[0].cgroup {
                cgroup.cpu = Reading::Present(Vec::new());
            }
        }
        window.activity = Reading::Denied("tracing needs root".to_owned());
        assert!(evaluate(&window).is_empty());
    }

    #[test]
    fn what_its_group_counts_and_tracing_does_not_see_is_a_gap() {
        let diagnoses = evaluate(&throttled(0.0));
        let [Says::Unmeasured(gap)] =
            &diagnoses.iter().map(|d| d.says.clone()).collect::<Vec<_>>()[..]
        else {
            panic!("{diagnoses:?}")
        };
        assert!(gap.why.contains("90 periods"), "{gap:?}");
    }

    #[test]
    fn a_little_is_only_worth_knowing() {
        let findings = found(evaluate(&throttled(0.05)));
        assert_eq!(findings[0].severity, Severity::Info);
    }
}
