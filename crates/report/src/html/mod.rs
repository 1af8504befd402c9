//! Pages that open offline: one file, no scripts, nothing fetched.

mod check;
mod disks;
mod lab;
mod pages;
mod verification;

pub use check::check;
pub use lab::lab;
pub use pages::pages;
pub use verification::verification;

use crate::facts::{self, Fact};
use crate::format::{THIN, clean, clean_json};
use maud::{DOCTYPE, Markup, html};
use serde::Serialize;
use untax_core::bench::PagesBench;
use untax_core::lab::LabMatrix;
use untax_core::verdict::Verification;
use untax_core::{Calibration, Check, Reading};

/// Forbids everything but the inline style sheet: the file is as harmless as it looks, even if
/// escaping were to fail.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// A saved result that has a page.
pub enum Run {
    /// Of `untax check`.
    Check(Box<Check>),
    /// Of `untax verify`.
    Verification(Verification),
    /// Of `untax bench pages`.
    Pages(Box<PagesBench>),
    /// Of `untax lab matrix`.
    Lab(LabMatrix),
}

/// One page of several results, in this order.
pub fn report(runs: &[Run]) -> String {
    let parts = runs.iter().map(|run| match run {
        Run::Check(result) => check::part(result),
        Run::Verification(result) => verification::part(result),
        Run::Pages(result) => pages::part(result),
        Run::Lab(result) => lab::part(result),
    });
    let parts: Vec<Part> = parts.collect();
    if let [one] = &parts[..] {
        return one.page();
    }
    let body = html! { @for part in &parts { (part.body) } };
    let records: Vec<&str> = parts.iter().map(|part| part.record.as_str()).collect();
    let record = format!("[\n{}\n]", records.join(",\n"));
    Part { title: "untax report".to_owned(), body, record }.page()
}

/// What a page says of one result, and the data that it was made from as JSON.
struct Part {
    title: String,
    body: Markup,
    record: String,
}

impl Part {
    fn new(title: String, body: Markup, data: &impl Serialize) -> Self {
        let record = serde_json::to_string_pretty(data)
            .unwrap_or_else(|error| format!("\"The data could not be written: {error}\""));
        Self { title, body, record }
    }

    fn page(&self) -> String {
        document(&self.title, &self.body, &self.record)
    }
}

/// The whole document around a body, with the data it was made from at the end.
fn document(title: &str, body: &Markup, record: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (maud::PreEscaped(include_str!("style.css"))) }
            }
            body {
                main {
                    (body)
                    details.record {
                        summary { "The complete record, as JSON" }
                        pre #record { (clean_json(record)) }
                    }
                }
            }
        }
    };
    // Line breaks are the page's own; any other control character came with somebody's name.
    page.into_string().split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// The top of a page: what it is, the answer, and the conditions.
fn head(kind: &str, title: &str, conditions: &[String]) -> Markup {
    html! {
        header {
            p.kind { (kind) }
            h1 { (title) }
            (line(conditions))
        }
    }
}

/// Segments in one quiet line.
fn line(segments: &[String]) -> Markup {
    html! {
        p.line { @for segment in segments { span { (segment) } " " } }
    }
}

/// A moment as people write it, to the second.
fn moment(text: &str) -> String {
    let seconds = text.split('.').next().unwrap_or(text);
    format!("{} UTC", seconds.trim_end_matches('Z').replace('T', &THIN.to_string()))
}

/// Facts as a list of names and values; what is not known says why.
fn fact_list(facts: &[Fact]) -> Markup {
    html! {
        dl.facts {
            @for fact in facts {
                dt { (fact.name) }
                @match &fact.value {
                    Reading::Present(value) => dd { (value) },
                    gap => dd.unknown { (gap_in_words(gap)) },
                }
            }
        }
    }
}

/// Why there is no value: what does not exist is known not to, all else is not known.
fn gap_in_words<T>(gap: &Reading<T>) -> String {
    match gap {
        Reading::Absent(why) => why.clone(),
        other => format!("not known: {}", other.why().unwrap_or_default()),
    }
}

/// What faults and touches cost on the host.
fn penalties(calibration: &Calibration) -> Markup {
    html! {
        section {
            h2 { "What a fault and a touch cost here" }
            p.quiet {
                "Measured by " (calibration.source) ", " (moment(&calibration.taken_at.to_string()))
                "; intervals in brackets."
            }
            dl.facts {
                @for (what, cost) in facts::penalties(calibration) { dt { (what) } dd { (cost) } }
            }
        }
    }
}
