//! The page of `untax verify`: every trial drawn, and what they show.

use super::part::{Part, head, moment};
use crate::format;
use maud::{Markup, html};
use untax_core::Gain;
use untax_core::verdict::{About, Trial, Verification};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const MARGIN: f64 = 16.0;

/// Trials with and without a plan, as a self-contained page.
pub fn verification(result: &Verification) -> String {
    part(result).page()
}

/// What the page says.
pub(super) fn part(result: &Verification) -> Part {
    let word = format::verdict(result.verdict.word);
    let measured = format::gain(&Gain::measured(result.verdict.measured));
    let title = format!("{word}: {measured}");
    let pairs = format::count_of(u64::from(result.verdict.pairs), "pair");
    let conditions = [moment(&result.taken_at.to_string()), result.measure.clone(), pairs];
    let predicted = result.predicted.as_ref().map(format::gain);
    let body = html! {
        (head("untax verify", &title, &conditions))
        section {
            dl.facts {
                @if let Some(about) = &result.about { (tried(about)) }
                dt { "Measured" } dd { (measured) ", " (format::compared(result)) ", 95 %" }
                @for (label, text) in result.affinity.iter().flat_map(|one| format::affinity(one)) {
                    dt { (label) } dd { (text) }
                }
                dt { "Predicted" }
                dd { (predicted.unwrap_or_else(|| format::NOT_MEASURED.to_owned())) }
                dt { "Noise" }
                dd { "such a median strays by up to " (format::percent(result.verdict.floor)) " without any change" }
                @if let Some(power) = &result.power { dt { "Power" } dd { (format::power(power)) } }
                @if let Some(receipt) = &result.receipt {
                    dt { "Applied" } dd { "as before; " code { "untax undo " (receipt) } " takes it back" }
                }
            }
        }
        section {
            h2 { "With the plan over without" }
            (ratio(result))
        }
        section {
            h2 { "Every trial" }
            p.quiet {
                "In the order in which they were made; filled with the plan, hollow without. A line joins the two "
                "of a pair."
            }
            div.scroll { (drawn(&result.trials)) }
        }
        section { h2 { "The numbers" } div.scroll { (table(&result.trials)) } }
        footer { p { "Run " code { (result.run) } ", plan " code { (result.plan) } "." } }
    };
    Part::new(title, body, result)
}

/// What was tried, and on what.
fn tried(about: &About) -> Markup {
    html! {
        @if !about.host.is_empty() { dt { "Host" } dd { (about.host) } }
        @if !about.databases.is_empty() { dt { "Databases" } dd { (about.databases.join(", ")) } }
        @for step in &about.steps { dt { "Plan" } dd { (step) } }
        @if !about.load.is_empty() { dt { "Load" } dd { code { (about.load) } } }
    }
}

/// The ratio with its interval; the line is where there is no difference.
fn ratio(result: &Verification) -> Markup {
    let measured = result.verdict.measured;
    let most = measured.high.max(1.0) * 1.1;
    let at = |value: f64| format!("{:.2}%", (value / most).clamp(0.0, 1.0) * 100.0);
    let said = format::gain(&Gain::measured(measured));
    html! {
        svg width="100%" height="34" role="img" aria-label=(said) {
            line.unity x1=(at(1.0)) x2=(at(1.0)) y1="0" y2="22" {}
            line.whisker x1=(at(measured.low)) x2=(at(measured.high)) y1="11" y2="11" {}
            line.whisker x1=(at(measured.low)) x2=(at(measured.low)) y1="6" y2="16" {}
            line.whisker x1=(at(measured.high)) x2=(at(measured.high)) y1="6" y2="16" {}
            circle cx=(at(measured.mid)) cy="11" r="5" fill="currentColor" {}
            text.mid x=(at(1.0)) y="33" { "1.00: no difference" }
        }
    }
}

/// The two trials of each pair, by their places.
fn pairs(trials: &[Trial]) -> Vec<(usize, usize)> {
    let of =
        |at: usize| (at + 1..trials.len()).find(|later| trials[*later].pair == trials[at].pair);
    (0..trials.len()).filter_map(|at| Some((at, of(at)?))).collect()
}

fn drawn(trials: &[Trial]) -> Markup {
    let most = trials.iter().map(|trial| trial.rate).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let last = trials.len().saturating_sub(1).max(1) as f64;
    let x = |at: usize| LEFT + at as f64 / last * (WIDTH - LEFT - MARGIN);
    let y = |rate: f64| HEIGHT - MARGIN - (rate / most).clamp(0.0, 1.0) * (HEIGHT - 2.0 * MARGIN);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT) role="img"
            aria-label="rate of each trial" {
            @for share in [0.0, 0.5, 1.0] {
                line x1=(LEFT) x2=(WIDTH - MARGIN) y1=(y(share * most)) y2=(y(share * most))
                    stroke="currentColor" stroke-opacity="0.2" {}
                text x=(LEFT - 8.0) y=(y(share * most) + 4.0) text-anchor="end" font-size="11"
                    fill="currentColor" { (format::number(share * most)) }
            }
            @for (one, other) in pairs(trials) {
                line.base x1=(format!("{:.1}", x(one))) y1=(format!("{:.1}", y(trials[one].rate)))
                    x2=(format!("{:.1}", x(other))) y2=(format!("{:.1}", y(trials[other].rate))) {}
            }
            @for (at, trial) in trials.iter().enumerate() {
                circle cx=(format!("{:.1}", x(at))) cy=(format!("{:.1}", y(trial.rate))) r="5"
                    stroke="currentColor" fill=(if trial.applied { "currentColor" } else { "none" }) {}
            }
        }
    }
}

fn table(trials: &[Trial]) -> Markup {
    html! {
        table {
            thead { tr { th.number { "Pair" } th { "Plan" } th.number { "Rate" } } }
            tbody {
                @for trial in trials {
                    tr {
                        td.number { (trial.pair + 1) }
                        td { (if trial.applied { "applied" } else { "not applied" }) }
                        td.number { (format::number(trial.rate)) }
                        @if !trial.counts() { td { "spoiled: " (format::guards(&trial.spoiled)) } }
                    }
                }
            }
        }
    }
}
