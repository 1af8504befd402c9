//! The page of a platform bench: bars with intervals for each cell, as the published figures have them.

use super::phrases;
use super::schema::{ArmResult, CellResult, CellState, PlatformBench};
use maud::{Markup, html};
use untax_core::bench::RatioVerdict;
use untax_report::html::part::{Part, head, line, moment};
use untax_report::{facts, format, svg};

/// What the page says.
pub(super) fn part(bench: &PlatformBench) -> Part {
    let title = phrases::headline(bench);
    let kind = format!("untax bench {}", phrases::family(bench));
    let conditions = [
        moment(&bench.taken_at.to_string()),
        facts::short_model(&bench.cpu_model),
        format!("kernel {}", bench.kernel_release),
    ];
    let compared = bench.cells.iter().filter(|cell| is_shown(cell) && !cell.explains);
    let explaining: Vec<_> = bench.cells.iter().filter(|c| is_shown(c) && c.explains).collect();
    let body = html! {
        (head(&kind, &title, &conditions))
        (line(&phrases::conditions(bench)))
        (line(&[format!("idle CPUs: {}", bench.idle)]))
        @if !bench.complete { p.warning { "Interrupted: the trials done so far are shown." } }
        @for guard in &bench.guards {
            p.warning[guard.failed] {
                code { (guard.asked) } @if guard.failed { " failed in " } @else { " passed in " }
                (guard.cell.as_deref().unwrap_or("no cell")) ": " (guard.said)
            }
        }
        @for warning in &bench.warnings { p.warning { (warning.text) } }
        section { h2 { "What was compared" } (arms(bench)) }
        section {
            h2 { "How fast each is" }
            @for cell in compared { (figure(cell)) }
        }
        @if !bench.lines.is_empty() {
            section {
                h2 { "How costs grow" }
                ul { @for growth in &bench.lines { li { (phrases::line(growth)) } } }
            }
        }
        @if !explaining.is_empty() {
            section {
                h2 { "What explains it" }
                @for cell in &explaining { (figure(cell)) }
            }
        }
        (not_measured(bench))
        footer { p { "Run " code { (bench.run) } ", seed " (bench.seed) "." } }
    };
    Part::new(title, body, bench)
}

fn is_shown(cell: &CellResult) -> bool {
    cell.state != CellState::NotReached
}

fn arms(bench: &PlatformBench) -> Markup {
    html! {
        table {
            thead { tr { th { "Arm" } th { "What it is" } th { "In force" } th { "Separates" } } }
            tbody {
                @for arm in &bench.arms {
                    tr {
                        td { (arm.id) @if arm.id == bench.baseline { " (baseline)" } }
                        td { (arm.summary) @if arm.is_emulated { " (emulated: not to be compared)" } }
                        @match &arm.cannot {
                            Some(why) => td.unknown { "cannot run here: " (why) },
                            None => td { (arm.configuration_line()) },
                        }
                        td { (arm.isolation.as_deref().unwrap_or("")) }
                    }
                }
            }
        }
    }
}

/// One cell: a bar for each arm, and what was measured beside it.
fn figure(cell: &CellResult) -> Markup {
    let highest = cell.arms.iter().filter_map(|arm| arm.value).map(|value| value.high);
    let highest = highest.filter(|high| high.is_finite()).fold(0.0, f64::max);
    html! {
        article {
            h3 {
                (cell.workload) " "
                span.severity { (phrases::unit(cell)) ", " (cell.placement.id()) }
            }
            p.quiet { (cell.summary) ". " (cell.blocks) " blocks, " (phrases::noise(cell)) "." }
            div.bars {
                @for arm in &cell.arms {
                    div.rule.total { (arm.arm) }
                    @match arm.value {
                        Some(value) if highest > 0.0 => {
                            (svg::interval_bar(value, highest, class(arm), &phrases::value(arm)))
                        },
                        _ => div.empty {},
                    }
                    div.value { (phrases::value(arm)) " " (phrases::ratio(arm)) " " (phrases::verdict(arm)) }
                }
            }
            (published(cell))
            @for arm in &cell.arms {
                @if let Some(text) = phrases::explained(cell, arm) { p.quiet { (text) "." } }
            }
            @if cell.state == CellState::Failed || cell.state == CellState::Spoiled {
                p.unknown { (cell.state.id()) ": " (cell.why.as_deref().unwrap_or("")) }
            }
            details {
                summary { "What was measured beside it" }
                dl.facts {
                    @for arm in &cell.arms {
                        dt { (arm.arm) }
                        dd {
                            @if let Some(why) = &arm.why { (why) ". " }
                            (phrases::extras(arm))
                        }
                    }
                }
            }
        }
    }
}

/// What others published of the same work.
fn published(cell: &CellResult) -> Markup {
    let mine = |arm: &str| cell.arm(arm).map(phrases::ratio).filter(|ratio| !ratio.is_empty());
    html! {
        @for theirs in &cell.published {
            p.quiet {
                "Published for " (theirs.arm) ": " (format::number(theirs.factor)) "× ("
                (theirs.source) "); here "
                (mine(&theirs.arm).unwrap_or_else(|| "not measured".to_owned())) "."
            }
        }
    }
}

fn class(arm: &ArmResult) -> &'static str {
    match arm.ratio.map(|ratio| ratio.verdict) {
        Some(RatioVerdict::Slower) => "high",
        Some(RatioVerdict::Faster) => "low",
        Some(RatioVerdict::Inconclusive) => "info",
        None => "total",
    }
}

fn not_measured(bench: &PlatformBench) -> Markup {
    let cells: Vec<_> = bench.cells.iter().filter(|cell| !is_shown(cell)).collect();
    html! {
        @if !cells.is_empty() {
            section {
                h2 { "Not reached in this time" }
                ul { @for cell in cells { li { (cell.name()) ": " (cell.summary) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::platform::fake;

    #[test]
    fn the_page_has_a_bar_for_each_arm_and_names_what_is_missing() {
        let page = super::part(&fake::result()).page();
        for expected in [
            "class=\"fill high\"",
            "cannot run here: no such program",
            "Not reached in this time",
            "Published for slow",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
    }
}
