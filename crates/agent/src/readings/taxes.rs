//! Taxes, gains, findings, and what was not measured.

use crate::catalogue::{ACTIVE, FINDING, GAIN, MEASURED, TAX, TAX_RATIO, TOTAL_TAX, UNMEASURED};
use crate::sample::Samples;
use std::collections::BTreeSet;
use untax_core::check::Checked;
use untax_core::finding::EVERY_RULE;
use untax_core::{Finding, Scope, reason};
use untax_rules::RULES;

/// Adds the seconds that each cause took, and those in which its rule could measure that. Every rule has
/// both from the first window on, so that its first second is seen to grow from 0. A window beside a trial adds
/// nothing: not its taxes, and not the time that they are to be divided by.
pub(super) fn counters(samples: &mut Samples, checked: &Checked, is_beside_trial: bool) {
    let Some(active_s) = checked.time.active_s.value() else { return };
    let active_s = if is_beside_trial { 0.0 } else { active_s.0 };
    samples.add(&ACTIVE, &[], active_s);
    for rule in RULES {
        let tax = found(checked, rule.id).and_then(|finding| finding.tax.as_ref());
        let took_s = tax.map_or(0.0, |tax| tax.share * active_s);
        samples.add(&TAX, &[rule.id, rule.scope.name()], took_s);
        let measured_s = if is_measured(checked, rule.id) { active_s } else { 0.0 };
        samples.add(&MEASURED, &[rule.id], measured_s);
    }
}

/// Adds what the last window says.
pub(super) fn gauges(samples: &mut Samples, checked: &Checked) {
    for scope in Scope::ALL {
        if let Some(tax) = checked.tax_of(scope) {
            for (bound, share) in [("low", tax.low), ("mid", tax.share), ("high", tax.high)] {
                samples.add(&TOTAL_TAX, &[scope.name(), bound], share);
            }
        }
    }
    for finding in one_of_each(checked) {
        let severity = severity(finding);
        samples.add(&FINDING, &[&finding.rule, finding.scope.name(), severity], 1.0);
    }
    for finding in one_of_each(checked) {
        if let Some(tax) = &finding.tax {
            samples.add(&TAX_RATIO, &[&finding.rule, finding.scope.name()], tax.share);
        }
    }
    let gaps = checked.unmeasured.iter().map(|gap| (gap.rule.as_str(), gap.id.as_str()));
    for (rule, id) in gaps.collect::<BTreeSet<_>>() {
        samples.add(&UNMEASURED, &[rule, id], 1.0);
    }
    for finding in one_of_each(checked) {
        if let Some(gain) = &finding.gain {
            for (bound, factor) in [("low", gain.low), ("mid", gain.factor), ("high", gain.high)] {
                samples.add(&GAIN, &[&finding.rule, bound], factor);
            }
        }
    }
}

/// As JSON names it.
pub(super) fn severity(finding: &Finding) -> &'static str {
    match finding.severity {
        untax_core::Severity::Info => "info",
        untax_core::Severity::Low => "low",
        untax_core::Severity::Medium => "medium",
        untax_core::Severity::High => "high",
    }
}

fn found<'a>(checked: &'a Checked, rule: &str) -> Option<&'a Finding> {
    one_of_each(checked).find(|finding| finding.rule == rule)
}

/// The findings, of each rule the dearest: they are in that order.
fn one_of_each(checked: &Checked) -> impl Iterator<Item = &Finding> {
    let mut seen = BTreeSet::new();
    checked.findings.iter().filter(move |finding| seen.insert(&finding.rule))
}

/// Whether a rule could say what its cause took, nothing included. One that found a cause without a tax
/// could not.
fn is_measured(checked: &Checked, rule: &str) -> bool {
    let is_gap = |gap: &&untax_core::Unmeasured| {
        (gap.rule == rule || gap.rule == EVERY_RULE) && gap.id != reason::SMALL.id
    };
    let untaxed = found(checked, rule).is_some_and(|finding| finding.tax.is_none());
    !untaxed && !checked.unmeasured.iter().any(|gap| is_gap(&gap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;
    use untax_core::{Database, Gain, Interval, Reading, Seconds, Severity, Tax, Unmeasured};

    fn checked(active_s: Option<f64>) -> Checked {
        let mut checked = Checked::of(&Database::unknown("postgres", 7, "a test"), "a test");
        if let Some(active_s) = active_s {
            checked.time.active_s = Reading::Present(Seconds(active_s));
        }
        let mut slow = Finding::new("disk-slow", Severity::High, "", "");
        slow.tax = Some(Tax::new(Interval::exact(0.25), ""));
        slow.gain = Some(Gain::measured(Interval::new(1.1, 1.3, 1.4)));
        let steal = Finding::new("vm-steal", Severity::Low, "", "");
        checked.findings = vec![slow, steal];
        let gap = |rule: &str, why: &str| Unmeasured::new(rule, why);
        checked.unmeasured = vec![
            gap("numa-remote", "no nodes"),
            gap("lock-contended", "less than 2 % of its time"),
        ];
        checked
    }

    fn value(samples: &Samples, metric: &'static Metric, rule: &str) -> Option<f64> {
        let of = |s: &&crate::sample::Sample| s.metric == metric && s.labels[0] == rule;
        samples.0.iter().find(of).map(|sample| sample.value)
    }

    #[test]
    fn a_tax_is_told_in_seconds_and_one_that_was_not_measured_has_no_denominator() {
        let mut samples = Samples::default();
        counters(&mut samples, &checked(Some(8.0)), false);
        let told = |metric, rule| value(&samples, metric, rule).unwrap();
        assert!((told(&TAX, "disk-slow") - 2.0).abs() < 1e-9);
        assert!((told(&MEASURED, "disk-slow") - 8.0).abs() < 1e-9);
        assert!((told(&MEASURED, "small-pages") - 8.0).abs() < 1e-9, "looked, found nothing");
        assert!((told(&MEASURED, "lock-contended") - 8.0).abs() < 1e-9, "too small to tell");
        assert!(told(&MEASURED, "numa-remote") < 1e-9, "could not look");
        assert!(told(&MEASURED, "vm-steal") < 1e-9, "found without a tax");
    }

    #[test]
    fn a_window_beside_a_trial_adds_nothing_to_taxes_and_to_what_they_are_divided_by() {
        let mut samples = Samples::default();
        counters(&mut samples, &checked(Some(8.0)), true);
        assert!(samples.0.iter().any(|s| s.metric == &ACTIVE), "the series are there");
        assert!(samples.0.iter().all(|sample| sample.value.abs() < 1e-9));
    }

    #[test]
    fn time_that_is_not_known_is_no_zero() {
        let mut samples = Samples::default();
        counters(&mut samples, &checked(None), false);
        assert!(samples.0.is_empty());
    }

    #[test]
    fn gauges_tell_the_last_window() {
        let mut samples = Samples::default();
        gauges(&mut samples, &checked(Some(8.0)));
        let told = |metric, rule| value(&samples, metric, rule);
        assert!(told(&TAX_RATIO, "disk-slow").is_some_and(|share| (share - 0.25).abs() < 1e-9));
        assert_eq!(told(&TAX_RATIO, "vm-steal"), None);
        assert!(told(&FINDING, "vm-steal").is_some());
        assert!(told(&UNMEASURED, "numa-remote").is_some());
        assert_eq!(samples.0.iter().filter(|s| s.metric == &GAIN).count(), 3);
    }
}
