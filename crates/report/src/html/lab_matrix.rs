//! The page of `untax lab matrix`.

use super::part::{Part, head, line, moment};
use crate::facts;
use crate::format;
use crate::terminal::{lab_columns, lab_time};
use maud::{Markup, html};
use untax_core::lab::{LabCell, LabMatrix};

/// What was caused and what was found, as a self-contained page.
pub fn lab(matrix: &LabMatrix) -> String {
    part(matrix).page()
}

/// What the page says.
pub(super) fn part(matrix: &LabMatrix) -> Part {
    let (expected, tries) = (matrix.as_expected(), matrix.tries());
    let title = format!("{expected} of {tries} checks said what they should");
    let conditions = [
        moment(&matrix.taken_at.to_string()),
        facts::short_model(&matrix.cpu_model),
        format!("kernel {}", matrix.kernel_release),
    ];
    let cells = matrix.cells();
    let body = html! {
        (head("untax lab matrix", &title, &conditions))
        (line(&["each cause put on a scratch database under load, checked, removed".to_owned()]))
        @if !matrix.complete { p.warning { "Interrupted: what was done so far is shown." } }
        section { h2 { "What was found" } div.scroll { (table(&cells)) } }
        section { h2 { "Where the time went" } div.scroll { (times(&cells)) } }
        @if !matrix.failed.is_empty() { (failed(matrix)) }
        @if !matrix.skipped.is_empty() { (skipped(matrix)) }
        footer { p { "Run " code { (matrix.run) } ", order by seed " (matrix.seed) "." } }
    };
    Part::new(title, body, matrix)
}

fn table(cells: &[LabCell]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "Cause" } th { "Engine" } th.number { "Found" } th.number { "Dearest" }
                    th.number { "Tax" } th.number { "Predicted (bounds)" } th.number { "Measured (95 %)" }
                    th { "Verdict" }
                }
            }
            tbody {
                @for cell in cells {
                    @let [cause, engine, found, first, tax, predicted, measured] = lab_columns(cell);
                    @let good = cell.as_expected() == cell.tries();
                    tr class=(if good { "faster" } else { "slower" }) {
                        td { (cause) } td { (engine) }
                        td.number { (found) } td.number { (first) } td.number { (tax) }
                        td.number { (predicted) } td.number { (measured) }
                        td.verdict { (if good { "as expected" } else { "not as expected" }) }
                    }
                }
            }
        }
    }
}

fn times(cells: &[LabCell]) -> Markup {
    html! {
        table {
            thead { tr { th { "Cause" } th { "Engine" } th { "With it" } th { "Without" } th { "Findings" } } }
            tbody {
                @for cell in cells {
                    @for run in &cell.runs {
                        tr {
                            td { (cell.cause) } td { (cell.engine) }
                            td { (lab_time(&run.time)) } td { (lab_time(&run.time_without)) }
                            td { @for f in &run.findings { (f.rule) " " (format::tax_or_not(f.tax.as_ref())) br; } }
                        }
                    }
                }
            }
        }
    }
}

fn failed(matrix: &LabMatrix) -> Markup {
    html! {
        section {
            h2 { "What failed, and counts as not found" }
            ul {
                @for one in &matrix.failed {
                    li { (one.cause) " on " (one.engine) ", run " (one.repeat) ": " (one.why) }
                }
            }
        }
    }
}

fn skipped(matrix: &LabMatrix) -> Markup {
    html! {
        section {
            h2 { "What could not be done here" }
            ul { @for one in &matrix.skipped { li { (one.cause) " on " (one.engine) ": " (one.why) } } }
        }
    }
}
