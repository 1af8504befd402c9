//! From a window to the result of a check.

use crate::catalogue::{self, RULES};
use crate::model::accounting::time_shares;
use crate::model::client_network::client_network;
use crate::model::idleness::{IDLE_SHARE, worked_s};
use crate::model::pressure::pressure;
use crate::model::stall::{self, percent};
use crate::rule::{Rule, TaxBase};
use untax_core::check::{Check, Checked, OwnCost, SCHEMA};
use untax_core::finding::{EVERY_RULE, Says};
use untax_core::ledger::Ledger;
use untax_core::window::Pair;
use untax_core::{
    Diagnosis, Finding, Interval, Portions, Reading, Scope, Severity, Tax, Unmeasured, Window,
};

/// Applies every rule to a window.
pub fn check(window: &Window, run: String, own: Reading<OwnCost>) -> Check {
    let diagnoses: Vec<Diagnosis> = RULES.iter().flat_map(|rule| diagnoses(rule, window)).collect();
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

/// What a rule says, with the rule's scope.
fn diagnoses(rule: &Rule, window: &Window) -> Vec<Diagnosis> {
    let mut all = (rule.evaluate)(window);
    for diagnosis in &mut all {
        if let Says::Found(finding) = &mut diagnosis.says {
            finding.scope = rule.scope;
        }
    }
    all
}

fn check_database(window: &Window, pair: &Pair, diagnoses: &[Diagnosis]) -> Checked {
    let database = pair.end;
    let (mut findings, mut unmeasured) = findings_and_gaps(Some(&database.id), diagnoses);
    if let Some(worked_s) = worked_s_if_idle(pair) {
        unmeasured.extend(without_taxes(&mut findings, worked_s, pair));
    }
    let [tax, database_tax] = charge_once(&mut findings);
    sort(&mut findings);
    Checked {
        time: time_shares(pair),
        time_pieces: pair.activity.value().map(|a| a.pieces(database.model)).unwrap_or_default(),
        ledger: pair.activity.as_ref().and_then(|activity| Ledger::of(activity, pair.end.model)),
        pressure: pressure(window, pair),
        network: client_network(pair),
        tax,
        database_tax,
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
    sort(&mut findings);
    (findings, unmeasured)
}

/// Puts the dearest findings first.
fn sort(findings: &mut [Finding]) {
    let share = |finding: &Finding| finding.tax.as_ref().map_or(-1.0, |tax| tax.share);
    findings
        .sort_by(|a, b| share(b).total_cmp(&share(a)).then_with(|| b.severity.cmp(&a.severity)));
}

/// How long the threads worked, where that is too little to speak of shares of it.
fn worked_s_if_idle(pair: &Pair) -> Option<f64> {
    worked_s(pair).into_value().filter(|worked_s| *worked_s < IDLE_SHARE * pair.seconds)
}

/// Takes the taxes of an idle database back: it has no time to lose. A tax beside active time stays where
/// its rule found enough of that time.
fn without_taxes(findings: &mut [Finding], worked_s: f64, pair: &Pair) -> Vec<Unmeasured> {
    let is_enough = |beside: fn(&Pair) -> Option<f64>| {
        worked_s + beside(pair).unwrap_or(0.0) >= IDLE_SHARE * pair.seconds
    };
    let stays = |finding: &Finding| beside_active_time(finding).is_some_and(is_enough);
    let priced = findings.iter_mut().filter(|finding| finding.tax.is_some() && !stays(finding));
    let unknown = match pair.activity.value().map(|activity| activity.unknown(pair.end.model)) {
        Some(unknown_s) if unknown_s.0 >= IDLE_SHARE * pair.seconds => {
            format!(", beside {:.3} s in waits of unknown meaning", unknown_s.0)
        }
        _ => String::new(),
    };
    let gaps: Vec<Unmeasured> = priced
        .map(|finding| {
            finding.tax = None;
            finding.gain = None;
            finding.latency_gain = None;
            finding.severity = Severity::Info;
            let why = format!(
                "tax: idle: all its threads together worked for {worked_s:.3} s of the window{unknown}; check \
                 it under load"
            );
            Unmeasured::new(&finding.rule, why)
        })
        .collect();
    // What is true of an idle database as well comes before what may be nothing under load.
    findings.sort_by_key(|finding| gaps.iter().any(|gap| gap.rule == finding.rule));
    gaps
}

/// Measures the seconds beside active time that the rule of a finding charges; `None` where its taxes are
/// shares of active time alone.
fn beside_active_time(finding: &Finding) -> Option<fn(&Pair) -> Option<f64>> {
    match catalogue::find(&finding.rule)?.tax_base {
        TaxBase::ActiveTime => None,
        TaxBase::ActiveTimeAnd(beside) => Some(beside),
    }
}

/// Makes the taxes of all findings portions of one whole, and gives the totals of both scopes.
///
/// The whole is active time, and where a rule charges time beside it, that too. So the taxes that a
/// report shows one by one add up to its totals.
fn charge_once(findings: &mut [Finding]) -> [Option<Tax>; 2] {
    let priced =
        |finding: &Finding| Some((beside_active_time(finding)?, finding.tax.as_ref()?.interval()));
    let beside = findings.iter().filter_map(priced).map(|(_, tax)| tax).reduce(Interval::plus);
    let claims = findings.iter().filter_map(|finding| {
        let tax = finding.tax.as_ref()?.interval();
        let of_active = beside_active_time(finding).is_none();
        let claim = beside.filter(|_| of_active).map_or(tax, |beside| of_the_rest(tax, beside));
        Some((finding.scope, claim))
    });
    let portions = Portions::of(claims);
    let taxed = findings.iter_mut().filter(|finding| finding.tax.is_some());
    for (finding, portion) in taxed.zip(portions.each()) {
        set_tax(finding, portion, &portions, beside.is_some());
    }
    Scope::ALL.map(|scope| {
        let of_scope = findings.iter().filter(|finding| finding.scope == scope);
        let modelled = of_scope.filter_map(|f| f.tax.as_ref()).any(|tax| tax.modelled);
        let method = format!("sum of the taxes of scope {}", scope.name());
        Some(Tax::new(portions.of_scope(scope)?, method).with_model(modelled))
    })
}

/// A share of active time, as a share of that and of the time beside it.
fn of_the_rest(tax: Interval, beside: Interval) -> Interval {
    let left = |taken: f64| (1.0 - taken).clamp(0.0, 1.0);
    Interval::new(
        tax.low * left(beside.high),
        tax.mid * left(beside.mid),
        tax.high * left(beside.low),
    )
}

/// Says of a claim that was changed why, and lets a severity that followed from it follow.
fn set_tax(finding: &mut Finding, portion: Interval, portions: &Portions, has_beside: bool) {
    let Some(tax) = finding.tax.as_mut().filter(|tax| tax.interval() != portion) else { return };
    if finding.severity == stall::severity(tax.interval()) {
        finding.severity = stall::severity(portion);
    }
    if has_beside {
        tax.method.push_str("; with the time that retransmissions took beside active time");
    }
    if portions.excess() > 0.0 {
        let all = percent(1.0 + portions.excess());
        tax.method =
            format!("{}; the causes claim {all} together, so each gives up its part", tax.method);
    }
    (tax.low, tax.share, tax.high) = (portion.low, portion.mid, portion.high);
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

    fn finding(rule: &str, low: f64, share: f64, high: f64) -> Finding {
        let share = Interval::new(low, share, high);
        let scope = catalogue::find(rule).unwrap().scope;
        Finding {
            tax: Some(Tax::new(share, "")),
            scope,
            ..Finding::new(rule, stall::severity(share), "", "")
        }
    }

    fn shares(findings: &[Finding]) -> Vec<f64> {
        findings.iter().filter_map(|f| f.tax.as_ref()).map(|tax| tax.share).collect()
    }

    #[test]
    fn what_is_stuck_is_beside_active_time_in_the_sum() {
        let exact = |rule, share| finding(rule, share, share, share);
        let total = |findings: &mut [Finding]| {
            charge_once(findings).map(|tax| tax.map_or(0.0, |tax| tax.share))
        };
        let mut active = [exact("disk-slow", 0.2), exact("lock-contended", 0.1)];
        let all = [&[exact("tcp-retransmit", 0.8)][..], &active].concat();
        let [platform, database] = total(&mut active);
        assert!((platform - 0.2).abs() < 1e-9 && (database - 0.1).abs() < 1e-9);
        // 20 s of 25: the others took 1 s and 0.5 s of the other five.
        let mut all = all;
        let [platform, database] = total(&mut all);
        assert!((platform - 0.84).abs() < 1e-9 && (database - 0.02).abs() < 1e-9);
        let each = shares(&all);
        assert!((each[1] - 0.04).abs() < 1e-9 && (each[2] - 0.02).abs() < 1e-9, "{each:?}");
        assert!(all[1].tax.as_ref().unwrap().method.contains("retransmissions"));
    }

    #[test]
    fn taxes_on_the_screen_add_up_to_totals_that_are_no_more_than_everything() {
        let mut findings = [
            finding("short-connections", 0.8, 0.87, 0.9),
            finding("lock-contended", 0.03, 0.16, 0.2),
            finding("disk-slow", 0.02, 0.02, 0.02),
        ];
        let totals = charge_once(&mut findings).map(Option::unwrap);
        let each = shares(&findings);
        assert!((each.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{each:?}");
        assert!((totals[0].share - each[2]).abs() < 1e-9);
        assert!((totals[1].share - each[0] - each[1]).abs() < 1e-9);
        let method = &findings[0].tax.as_ref().unwrap().method;
        assert!(method.contains("claim 105 % together"), "{method}");
        let severities = findings.map(|finding| finding.severity);
        assert_eq!(severities, [Severity::High, Severity::Info, Severity::Info], "from new bounds");
    }

    #[test]
    fn locks_are_not_the_platforms() {
        let busy = of(5.0);
        let rules = busy.findings_of(Scope::Database).map(|finding| finding.rule.as_str());
        assert_eq!(rules.collect::<Vec<_>>(), ["lock-contended"]);
        assert!((busy.database_tax.as_ref().unwrap().share - 0.5).abs() < 1e-9);
        let platform: Vec<Finding> = busy.findings_of(Scope::Platform).cloned().collect();
        let platform: f64 = shares(&platform).iter().sum();
        assert!((busy.tax.unwrap().share - platform).abs() < 1e-9 && platform < 0.5);
    }

    #[test]
    fn an_idle_database_has_no_time_to_lose() {
        let busy = of(5.0);
        assert!(busy.database_tax.is_some_and(|tax| tax.share > 0.4));
        let idle = of(0.001);
        assert!(idle.database_tax.is_none());
        let lock = idle.findings.iter().find(|finding| finding.rule == "lock-contended").unwrap();
        assert!(lock.tax.is_none() && lock.severity == Severity::Info);
        assert!(idle.unmeasured.iter().any(|gap| gap.why.contains("idle")));
    }

    #[test]
    fn what_an_idle_database_has_anyway_comes_first() {
        let window = test_window::postgres();
        let untaxed = Finding { tax: None, ..finding("hugepage-limit", 0.0, 0.0, 0.0) };
        let mut findings = [finding("cpu-contended", 0.04, 0.04, 0.04), untaxed];
        let gaps = without_taxes(&mut findings, 0.001, &window.databases().next().unwrap());
        sort(&mut findings);
        let rules = findings.map(|finding| finding.rule);
        assert_eq!(rules, ["hugepage-limit", "cpu-contended"]);
        assert_eq!(gaps.len(), 1);
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
