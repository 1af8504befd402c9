//! The parts of a page, and the document around them.

use crate::facts::{self, Fact};
use crate::format::{THIN, clean, clean_json};
use maud::{DOCTYPE, Markup, html};
use serde::Serialize;
use untax_core::{Calibration, Reading};

/// Forbids everything but the inline style sheet: the file is as harmless as it looks, even if
/// escaping were to fail.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// What a page says of one result, and the data that it was made from as JSON.
pub struct Part {
    pub(super) title: String,
    pub(super) body: Markup,
    pub(super) record: String,
}

impl Part {
    /// A part whose record is this data.
    pub fn new(title: String, body: Markup, data: &impl Serialize) -> Self {
        let record = serde_json::to_string_pretty(data)
            .unwrap_or_else(|error| format!("\"The data could not be written: {error}\""));
        Self { title, body, record }
    }

    /// A page of this part alone.
    pub fn page(&self) -> String {
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
pub fn head(kind: &str, title: &str, conditions: &[String]) -> Markup {
    html! {
        header {
            p.kind { (kind) }
            h1 { (title) }
            (line(conditions))
        }
    }
}

/// Segments in one quiet line.
pub fn line(segments: &[String]) -> Markup {
    html! {
        p.line { @for segment in segments { span { (segment) } " " } }
    }
}

/// A moment as people write it, to the second.
pub fn moment(text: &str) -> String {
    let seconds = text.split('.').next().unwrap_or(text);
    format!("{} UTC", seconds.trim_end_matches('Z').replace('T', &THIN.to_string()))
}

/// Facts as a list of names and values; what is not known says why.
pub(super) fn fact_list(facts: &[Fact]) -> Markup {
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
pub(super) fn gap_in_words<T>(gap: &Reading<T>) -> String {
    match gap {
        Reading::Absent(why) => why.clone(),
        other => format!("not known: {}", other.why().unwrap_or_default()),
    }
}

/// What faults and touches cost on the host.
pub fn penalties(calibration: &Calibration) -> Markup {
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
