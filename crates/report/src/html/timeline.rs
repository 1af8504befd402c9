//! The page of `untax timeline`: the figure, and each change with its causes.

use super::part::{Part, head, moment};
use crate::format;
use crate::timeline_figure::{figure, legend};
use crate::timeline_words::{fact, levels, rests, signed, when};
use maud::{Markup, html};
use untax_core::storage::Storage;
use untax_core::timeline::{
    Change, Comparison, Database, FactChange, Note, Timeline, part_in_words,
};
use untax_core::{Bytes, Reading, Seconds};

/// The timeline as a self-contained page.
pub fn timeline(result: &Timeline) -> String {
    part(result).page()
}

/// What the page says.
pub(super) fn part(result: &Timeline) -> Part {
    let title = title(result);
    let conditions = [
        format!("{} to {}", moment(&result.from.to_string()), moment(&result.to.to_string())),
        format!(
            "{} of {}",
            format::count_of(result.windows, "window"),
            format::seconds(Seconds(result.window_s))
        ),
        result.source.clone(),
    ];
    let body = html! {
        (head("untax timeline", &title, &conditions))
        (sections(result))
    };
    Part::new(title, body, result)
}

/// What is to be known of the windows, and each database.
pub fn sections(result: &Timeline) -> Markup {
    html! {
        (notes(&result.notes))
        @for database in &result.databases { (section(database)) }
    }
}

/// The largest change, in a sentence.
fn title(result: &Timeline) -> String {
    let changes = result
        .databases
        .iter()
        .flat_map(|database| database.changes.iter().map(move |change| (database, change)));
    let size = |change: &Change| change.gained_per_s().abs();
    match changes.max_by(|a, b| size(a.1).total_cmp(&size(b.1))) {
        Some((database, change)) => {
            let cause = change.causes.first().map_or("unexplained", |cause| cause.text.as_str());
            format!("{}: {}: {cause}", database.name, levels(change))
        }
        None => "Throughput did not change beyond its noise".to_owned(),
    }
}

fn notes(notes: &[Note]) -> Markup {
    html! {
        @for note in notes {
            p.warning { @if let Some(at) = note.at { (moment(&at.to_string())) ": " } (note.text) }
        }
    }
}

fn section(database: &Database) -> Markup {
    html! {
        section {
            h2 { (database.name) }
            @if let Some(why) = &database.untold { p.unknown { (why) } }
            div.scroll { (figure(database)) }
            (legend(database))
            (notes(&database.notes))
            @if database.changes.is_empty() && database.untold.is_none() {
                p { "No change beyond the noise of the load itself." }
            }
            ol.changes { @for change in &database.changes { (item(change)) } }
            (storage(database))
        }
    }
}

fn item(change: &Change) -> Markup {
    let way = if change.gained_per_s() < 0.0 { "lost" } else { "gained" };
    html! {
        li class=(way) {
            h3 { (change.rank) ". " (levels(change)) }
            p.quiet { (when(change)) }
            @for cause in &change.causes {
                p {
                    @if let Some(gained) = cause.gained_per_s { strong { (signed(gained)) } " " }
                    (cause.text)
                }
            }
            @if change.causes.is_empty() { p.unknown { "Unexplained: no fact or measure changed about then that accounts for it." } }
            (rest(change))
            @match &change.seconds {
                Reading::Present(compared) => (table(compared)),
                gap => p.unknown { "Time of a request: " (format::NOT_MEASURED) ": " (gap.why().unwrap_or_default()) },
            }
            (also(&change.also))
        }
    }
}

/// What no cause is charged with.
fn rest(change: &Change) -> Markup {
    html! {
        @for (per_s, text) in rests(change) { p.quiet { (signed(per_s)) " " (text) } }
    }
}

fn table(compared: &Comparison) -> Markup {
    let time = |s: f64| format::seconds(Seconds(s));
    html! {
        div.scroll {
            table {
                thead { tr {
                    th { "Time of a request" } th.number { "before" } th.number { "after" } th.number { "brought" }
                } }
                tbody {
                    @for part in &compared.parts {
                        tr {
                            td { (part_in_words(&part.part)) }
                            td.number { (time(part.before_s)) }
                            td.number { (time(part.after_s)) }
                            td.number { (signed(part.gained_per_s)) }
                        }
                    }
                    tr {
                        td { "threads at once" }
                        td.number { (format::number(compared.at_once.before)) }
                        td.number { (format::number(compared.at_once.after)) }
                        td.number { (signed(compared.at_once.gained_per_s)) }
                    }
                    tr { td { strong { "all" } } td {} td {} td.number { strong { (signed(compared.gained_per_s)) } } }
                }
            }
        }
    }
}

fn also(facts: &[FactChange]) -> Markup {
    html! {
        @if !facts.is_empty() {
            p.quiet { "Changed about then too: " (facts.iter().map(fact).collect::<Vec<_>>().join("; ")) }
        }
    }
}

fn storage(database: &Database) -> Markup {
    html! {
        @if !database.storage.is_empty() {
            h3 { "Its storage" }
            @if !database.storage_in_words.is_empty() { p { (database.storage_in_words) } }
            (storage_table(&database.storage))
        }
    }
}

fn storage_table(rows: &[Storage]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr {
                    th { "Disk" } th { "For" } th.number { "Requests/s" } th.number { "Bytes/s" } th.number { "Size" }
                    th.number { "In sequence" } th.number { "Time" } th.number { "At once" } th.number { "Burst" }
                } }
                tbody { @for row in rows {
                    tr {
                        td { (row.device) }
                        td { (row.role) " " (row.direction) }
                        td.number { (format::number(row.requests_per_s)) }
                        td.number { (format::bytes(Bytes(row.bytes_per_s as u64))) }
                        td.number { (format::bytes(Bytes(row.size_bytes as u64))) }
                        td.number { (format::percent(row.sequential)) }
                        td.number { (format::seconds(Seconds(row.latency_s))) }
                        td.number { (format::number(row.queue_depth)) }
                        td.number { @if let Some(burst) = row.burst { (format::number(burst)) "×" } }
                    }
                } }
            }
        }
    }
}
