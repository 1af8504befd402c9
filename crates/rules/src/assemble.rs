//! From a window to the result of a check.

use crate::catalogue::{self, RULES};
use crate::model::accounting::{counted_active_s, time_shares};
use crate::model::client_network::client_network;
use crate::model::pressure::pressure;
use crate::model::stall::IDLE_SHARE;
use crate::rule::TaxBase;
use untax_core::check::{Check, Checked, OwnCost, SCHEMA};
use untax_core::finding::{EVERY_RULE, Says};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Finding, Interval, Reading, Severity, Tax, Unmeasured, Window};

/// Applies every rule to a window.
pub fn check(window: &Window, run: String, own: Reading<OwnCost>) -> Check {
    let diagnoses: Vec<Diagnosis> = RULES.iter().flat_map(|rule| (rule.evaluate)(window)).collect();
    let (findings, mut unmeasured) = findings_and_gaps(None, &diagnoses);
    unmeasured.extend(window.start.databases.iter().filter_map(|start| {
        let gone = !window.end.databases.iter().any(|end| start.is_same_instance(end));
        gone.then(|| {
            let why = format!("{} ended or was restarted during the check", start.id);
            Unmeasured::new(EVERY_RULE, why)
        })
    }));
    Check {
        schema: SCHEMA.to_owned(),
        run,
        taken_at: window.end.taken_at,
        window_s: window.seconds(),
        own,
        host: window.end.host.clone(),
        calibration: window.calibration.clone(),
        io: window.io.clone(),
        databases: window
            .databases()
            .map(|pair| check_database(window, &pair, &diagnoses))
            .collect(),
        findings,
        unmeasured,
    }
}

fn check_database(window: &Window, pair: &Pair, diagnoses: &[Diagnosis]) -> Checked {
    let database = pair.end;
    let (mut findings, mut unmeasured) = findings_and_gaps(Some(&database.id), diagnoses);
    if let Some(active_s) = active_s_if_idle(pair) {
        unmeasured.extend(without_taxes(&mut findings, active_s, pair));
    }
    Checked {
        time: time_shares(pair),
        pressure: pressure(window, pair),
        network: client_network(pair),
        tax: sum(&findings),
        findings,
        unmeasured,
        ..Checked::of(database, "not measured")
    }
}

/// What the rules said of one database or of the host, the dearest findings first.
fn findings_and_gaps(
    database: Option<&str>,
    diagnoses: &[Diagnosis],
) -> (Vec<Finding>, Vec<Unmeasured>) {
    let mut findings = Vec::new();
    let mut unmeasured = Vec::new();
    for diagnosis in diagnoses.iter().filter(|d| d.database.as_deref() == database) {
        match &diagnosis.says {
            Says::Found(finding) => findings.push(finding.clone()),
            Says::Unmeasured(gap) => unmeasured.push(gap.clone()),
        }
    }
    let share = |finding: &Finding| finding.tax.as_ref().map_or(-1.0, |tax| tax.share);
    findings
        .sort_by(|a, b| share(b).total_cmp(&share(a)).then_with(|| b.severity.cmp(&a.severity)));
    (findings, unmeasured)
}

/// How long the threads were active, where that is too little to speak of shares of it.
fn active_s_if_idle(pair: &Pair) -> Option<f64> {
    // Without tracing, what the kernel counts anyway: time on CPU and runnable. The answers that untax asks
    // for are most of that in a database that nobody else asks.
    let active_s = match pair.activity.value() {
        Some(activity) => activity.active(pair.end.model).0,
        None => counted_active_s(pair).into_value()?,
    };
    (active_s < IDLE_SHARE * pair.seconds).then_some(active_s)
}

/// Takes the taxes of an idle database back: it has no time to lose. A tax beside active time stays where
/// its rule found enough of that time.
fn without_taxes(findings: &mut [Finding], active_s: f64, pair: &Pair) -> Vec<Unmeasured> {
    let is_enough = |beside: fn(&Pair) -> Option<f64>| {
        active_s + beside(pair).unwrap_or(0.0) >= IDLE_SHARE * pair.seconds
    };
    let stays = |finding: &Finding| beside_active_time(finding).is_some_and(is_enough);
    let priced = findings.iter_mut().filter(|finding| finding.tax.is_some() && !stays(finding));
    priced
        .map(|finding| {
            finding.tax = None;
            finding.gain = None;
            finding.severity = Severity::Info;
            let why = format!(
                "tax: idle: all its threads together were active for {active_s:.3} s of the \
                 window; check it under load"
            );
            Unmeasured::new(&finding.rule, why)
        })
        .collect()
}

/// Measures the seconds beside active time that the rule of a finding charges; `None` where its taxes are
/// shares of active time alone.
fn beside_active_time(finding: &Finding) -> Option<fn(&Pair) -> Option<f64>> {
    match catalogue::find(&finding.rule)?.tax_base {
        TaxBase::ActiveTime => None,
        TaxBase::ActiveTimeAnd(beside) => Some(beside),
    }
}

/// The sum of all measured taxes. Rules never charge the same time twice, so shares of active time add
/// up. A tax beside it leaves the other taxes shares of what is left.
fn sum(findings: &[Finding]) -> Option<Tax> {
    let total_of = |is_beside: bool| {
        let counts = move |f: &&Finding| beside_active_time(f).is_some() == is_beside;
        let taxes = findings.iter().filter(counts).filter_map(|finding| finding.tax.as_ref());
        taxes.map(|tax| Interval::new(tax.low, tax.share, tax.high)).reduce(Interval::plus)
    };
    let total = match (total_of(true), total_of(false)) {
        (Some(beside), Some(active)) => beside.plus(active.scale(1.0 - beside.mid)),
        (beside, active) => beside.or(active)?,
    };
    Some(Tax::new(total, "sum of the findings' taxes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::activity::Doing;
    use untax_core::database::TcpCounts;
    use untax_core::reason::REASONS;

    fn of(on_cpu_s: f64) -> Checked {
        let mut window = test_window::postgres();
        test_window::trace(
            &mut window,
            &[(Doing::OnCpu, on_cpu_s), (Doing::Futex, on_cpu_s), (Doing::Poll, 9.0)],
        );
        check(&window, String::new(), Reading::Absent(String::new())).databases.remove(0)
    }

    #[test]
    fn what_is_stuck_on_its_way_is_no_idleness() {
        let mut window = test_window::postgres();
        let doing = [(Doing::OnCpu, 0.01), (Doing::Futex, 0.01), (Doing::Receive, 30.0)];
        test_window::trace(&mut window, &doing);
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            snapshot.databases[0].counters.tcp = Reading::Present(TcpCounts {
                sent_segments: by * 1000,
                retransmitted_segments: by * 100,
                timeouts: by * 20,
                listen_overflows: 0,
            });
        }
        let stuck = check(&window, String::new(), Reading::Absent(String::new()));
        let stuck = &stuck.databases[0];
        assert!(stuck.tax.as_ref().is_some_and(|tax| tax.share > 0.9 && tax.share < 1.0));
        let priced = stuck.findings.iter().filter(|finding| finding.tax.is_some());
        assert_eq!(priced.map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["tcp-retransmit"]);
        assert!(stuck.unmeasured.iter().any(|gap| gap.rule == "lock-contended"));
    }

    #[test]
    fn what_is_stuck_is_beside_active_time_in_the_sum() {
        let finding = |rule: &str, share| Finding {
            tax: Some(Tax::new(Interval::exact(share), "")),
            ..Finding::new(rule, Severity::High, "", "")
        };
        let share = |findings: &[Finding]| sum(findings).unwrap().share;
        let active = [finding("disk-slow", 0.2), finding("lock-contended", 0.1)];
        assert!((share(&active) - 0.3).abs() < 1e-9);
        // 20 s of 25: 1.5 s of the other five.
        let all = [&[finding("tcp-retransmit", 0.8)][..], &active].concat();
        assert!((share(&all) - 0.86).abs() < 1e-9);
    }

    #[test]
    fn an_idle_database_has_no_time_to_lose() {
        let busy = of(5.0);
        assert!(busy.tax.is_some_and(|tax| tax.share > 0.4));
        let idle = of(0.001);
        assert!(idle.tax.is_none());
        let lock = idle.findings.iter().find(|finding| finding.rule == "lock-contended").unwrap();
        assert!(lock.tax.is_none() && lock.severity == Severity::Info);
        assert!(idle.unmeasured.iter().any(|gap| gap.why.contains("idle")));
    }

    #[test]
    fn without_tracing_what_the_kernel_counts_says_that_it_is_idle() {
        let checked = |on_cpu_s: f64| {
            let mut window = test_window::postgres();
            window.activity = Reading::Denied("no root".to_owned());
            for (snapshot, by) in [(&mut window.start, 0.0), (&mut window.end, 1.0)] {
                let counters = &mut snapshot.databases[0].counters;
                counters.on_cpu_s = Reading::Present(untax_core::Seconds(on_cpu_s * by));
                counters.runnable_s = Reading::Present(untax_core::Seconds(0.01 * by));
            }
            check(&window, String::new(), Reading::absent("a test")).databases.remove(0)
        };
        assert!(checked(5.0).tax.is_some(), "{:#?}", checked(5.0).findings);
        let idle = checked(0.06);
        assert!(idle.tax.is_none() && idle.findings.iter().all(|f| f.tax.is_none()));
        assert!(idle.unmeasured.iter().any(|gap| gap.why.contains("tax: idle")));
    }

    #[test]
    fn what_no_rule_could_measure_has_a_listed_reason_each() {
        let check = check(&test_window::unread(), String::new(), Reading::absent("a test"));
        let gaps = check.databases.iter().flat_map(|database| &database.unmeasured);
        let gaps: Vec<_> = gaps.chain(&check.unmeasured).collect();
        assert!(gaps.len() > 10, "{gaps:?}");
        let is_listed = |gap: &&Unmeasured| REASONS.iter().any(|reason| reason.id == gap.id);
        assert!(gaps.iter().all(is_listed), "{gaps:?}");
    }
}
