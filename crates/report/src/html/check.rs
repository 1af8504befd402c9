//! The page of `untax check`.

use super::part::{Part, fact_list, gap_in_words, head, line, moment, penalties};
use crate::facts;
use crate::format::{self, THIN, count_of};
use crate::{summary, svg};
use maud::{Markup, html};
use untax_core::Evidence;
use untax_core::activity::Piece;
use untax_core::check::{Check, Checked, TimeShares};
use untax_core::{Finding, Reading, Scope, Tax};

/// The result of a check as a self-contained page.
pub fn check(check: &Check) -> String {
    part(check).page()
}

/// What the page says.
pub(super) fn part(check: &Check) -> Part {
    let title = summary::headline(check);
    let scale = summary::scale(check);
    let (busy, idle) = summary::busy_and_idle(check);
    let body = html! {
        (head("untax check", &title, &conditions(check)))
        @if check.databases.is_empty() {
            @for line in summary::without_database(check) { p.lede { (line) } }
        }
        (contents(check))
        (overview(check, scale))
        @for db in busy { (database(db, scale, &check.run)) }
        @if let Some(line) = summary::idle_line(&idle) {
            section {
                details {
                    summary { (line) }
                    @for db in idle { (database(db, scale, &check.run)) }
                }
            }
        }
        section #host {
            h2 { "This host" }
            (figure(&check.findings, scale))
            (findings(&check.findings, &check.run))
            details {
                summary { "What is known of this host" }
                (fact_list(&facts::host(&check.host)))
            }
        }
        (super::disks::disks(&check.io))
        (calibration(check))
        (unmeasured(check))
        (own(check))
    };
    Part::new(title, body, check)
}

fn conditions(check: &Check) -> Vec<String> {
    let mut parts = vec![moment(&check.taken_at.to_string())];
    parts.push(if check.window_s > 0.0 {
        format!("window of {}{THIN}s", format::number(check.window_s))
    } else {
        "no window: facts only".to_owned()
    });
    parts.extend(facts::host_line(&check.host).into_iter().take(4));
    parts
}

/// From so many databases on a page has contents.
const MANY: usize = 4;

/// Where each database is on the page, if there are many.
fn contents(check: &Check) -> Markup {
    let (busy, _) = summary::busy_and_idle(check);
    if busy.len() < MANY {
        return html! {};
    }
    html! {
        nav aria-label="Databases" {
            ol {
                @for db in busy {
                    li { a href={ "#" (anchor(db)) } { (facts::name(db)) " " (db.name) } ": " (summary::platform_tax(db)) }
                }
                li { a href="#host" { "This host" } }
            }
        }
    }
}

/// The name of a database's part of the page.
fn anchor(db: &Checked) -> String {
    format!("pid-{}", db.pid)
}

/// Where the active time went, twice as one bar: by what threads did, and by cause.
fn whole(db: &Checked) -> Markup {
    let parts = crate::time::parts(&db.time);
    let taxes = summary::findings_in_order(&db.findings);
    let share_of = |f: &&Finding| Some((f.rule.clone(), f.tax.as_ref()?.share));
    let mut causes: Vec<(String, f64)> = taxes.iter().filter_map(share_of).collect();
    let rest = 1.0 - causes.iter().map(|(_, share)| share).sum::<f64>();
    causes.retain(|(_, share)| *share >= crate::time::WORTH);
    if rest > 0.0 && !causes.is_empty() {
        causes.push(("no cause found".to_owned(), rest));
    }
    let parts: Vec<(String, f64)> =
        parts.into_iter().map(|(n, share)| (n.to_owned(), share)).collect();
    html! {
        (svg::stacked("Active time by what its threads did", &parts))
        (over_window(db))
        (svg::stacked("Active time by cause", &causes))
    }
}

/// The same parts over the window, in the colours of the bar above.
fn over_window(db: &Checked) -> Markup {
    let shown = crate::time::parts(&db.time);
    let place = |name: &str| crate::time::PARTS.iter().position(|part| *part == name);
    let order: Vec<usize> = shown.iter().filter_map(|(name, _)| place(name)).collect();
    let column = |piece: &Piece| {
        let all = crate::time::of_piece(piece).map(|part| part.0 / piece.length_s.0);
        svg::Column { wide: piece.length_s.0, parts: order.iter().map(|at| all[*at]).collect() }
    };
    let pieces = db.time_pieces.iter().filter(|piece| piece.length_s.0 > 0.0);
    svg::strip("Active threads over the window", &pieces.map(column).collect::<Vec<_>>())
}

fn database(db: &Checked, scale: f64, run: &str) -> Markup {
    html! {
        section.database id=(anchor(db)) {
            div.title {
                h2 { (facts::name(db)) }
                p.cost {
                    (summary::platform_tax(db))
                    @if let Some(own) = summary::database_tax(db) { br; (own) }
                }
            }
            (line(&facts::database_line(db)))
            (whole(db))
            (figure(&db.findings, scale))
            (findings_of(db, run))
            div.columns {
                div {
                    h3 { "This database" }
                    (fact_list(&facts::database(db)))
                    (segments(db))
                }
                div {
                    h3 { "Its settings" }
                    (settings(db))
                    h3 { "Where its time went" }
                    (time(&db.time))
                }
            }
        }
    }
}

/// A row of a figure: the class that colours it, what it is called, and what it costs.
type Row<'a> = (&'static str, String, Option<&'a Tax>, String);

/// A bar for every cause, the dearest first, once one of them is measured.
fn figure(all: &[Finding], scale: f64) -> Markup {
    if all.iter().all(|f| f.tax.is_none()) {
        return html! {};
    }
    let rows = summary::findings_in_order(all).into_iter().map(|f| {
        let tax = f.tax.as_ref();
        (summary::severity(f.severity), f.rule.clone(), tax, format::tax_or_not(tax))
    });
    bars(&rows.collect::<Vec<_>>(), scale)
}

/// A bar for every database, where there are several.
fn overview(check: &Check, scale: f64) -> Markup {
    let rows = summary::databases_by_cost(check).into_iter().flat_map(|db| {
        let platform = ("total", facts::name(db), db.tax.as_ref(), summary::cost_in_short(db));
        let own = db.database_tax.as_ref().map(|tax| {
            let name = format!("{}, by itself and its application", facts::name(db));
            ("total", name, Some(tax), format::tax(tax))
        });
        std::iter::once(platform).chain(own)
    });
    match check.databases.len() {
        0 | 1 => html! {},
        _ => bars(&rows.collect::<Vec<_>>(), scale),
    }
}

fn bars(rows: &[Row<'_>], scale: f64) -> Markup {
    html! {
        @if !rows.is_empty() {
            div.bars role="group" aria-label="Share of active time" {
                @for (class, name, tax, cost) in rows {
                    span class={ "rule " (class) } { (name) }
                    span.value { (cost) }
                    @match tax {
                        Some(tax) => { (svg::bar(tax, scale, class)) },
                        None => span.empty {},
                    }
                }
                @if rows.iter().any(|(_, _, tax, _)| tax.is_some()) {
                    span.value.quiet { "of active time" }
                    (svg::bar_axis(scale))
                }
            }
        }
    }
}

fn findings(all: &[Finding], run: &str) -> Markup {
    html! { @for f in summary::findings_in_order(all) { (finding(f, run)) } }
}

/// Those of the platform first.
fn findings_of(db: &Checked, run: &str) -> Markup {
    let [platform, own] = Scope::ALL.map(|scope| summary::findings_of(&db.findings, scope));
    html! {
        @for f in platform { (finding(f, run)) }
        @if !own.is_empty() { h3.scope { (summary::OF_DATABASE) } }
        @for f in own { (finding(f, run)) }
    }
}

/// Commands that lead on from a finding, to copy.
fn commands(f: &Finding, run: &str) -> Vec<String> {
    let plan = format!("untax plan --from {run} --only {} -o fix", f.rule);
    let is_planned = !run.is_empty() && f.remedy.is_some();
    let explain = format!("untax explain {}", f.rule);
    is_planned.then_some(plan).into_iter().chain([explain]).collect()
}

fn finding(f: &Finding, run: &str) -> Markup {
    let severity = summary::severity(f.severity);
    html! {
        article class=(severity) {
            h3 { (f.rule) " " span.severity { (severity) } }
            p.summary { (f.summary) }
            dl.points {
                dt { "Fix" } dd { (f.fix) }
                dt { "Next" } dd { @for one in commands(f, run) { code.command { (one) } " " } }
                @if let Some(gain) = &f.gain {
                    dt { "Gain" } dd { (format::gain(gain)) " throughput, predicted" }
                }
                @if let Some(gain) = &f.latency_gain {
                    dt { "Latency" } dd { (format::latency_gain(gain)) ", predicted" }
                }
                dt { "Tax" }
                @match &f.tax {
                    Some(tax) => dd { (format::tax(tax)) span.method { " " (tax.method) } },
                    None => dd.unknown { (format::NOT_MEASURED) },
                }
            }
            @if !f.evidence.is_empty() { (evidence(&f.evidence)) }
        }
    }
}

fn evidence(items: &[Evidence]) -> Markup {
    html! {
        table.evidence {
            thead { tr { th { "Evidence" } th.number { "Value" } th { "Read from" } } }
            tbody {
                @for e in items {
                    tr {
                        td { (e.name) }
                        td.number { (format::evidence(e)) }
                        td.source { (e.source) }
                    }
                }
            }
        }
    }
}

fn segments(db: &Checked) -> Markup {
    let Some(all) = db.memory.segments.value().filter(|all| !all.is_empty()) else {
        return html! {};
    };
    html! {
        table {
            thead { tr { th { "Mapping" } th.number { "Size" } th.number { "Page" } } }
            tbody {
                @for s in all {
                    tr {
                        td.source { @if s.name.is_empty() { "private memory" } @else { (s.name) } }
                        td.number { (format::bytes(s.bytes)) }
                        td.number { (format::value_or_why(&s.page_size_bytes, |b| format::bytes(*b))) }
                    }
                }
            }
        }
    }
}

fn settings(db: &Checked) -> Markup {
    match &db.settings {
        Reading::Present(settings) => html! {
            p.quiet {
                "Read from: " (settings.source)
                @if !settings.instead_of.is_empty() { " (" (settings.instead_of) ")" }
            }
            dl.facts.code {
                @for (name, value) in &settings.values { dt { (name) } dd { (value) } }
            }
        },
        gap => html! { p.unknown { (gap_in_words(gap)) } },
    }
}

fn time(time: &TimeShares) -> Markup {
    let active = time.active_s.value().copied();
    let rows = facts::time(time);
    let mut gaps: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, reading) in &rows {
        let Some(why) = reading.why() else { continue };
        match gaps.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => gaps.push((why, vec![name])),
        }
    }
    html! {
        dl.facts {
            @if crate::time::is_idle(time) {
                dt { "Active" } dd { (crate::time::IDLE) }
            } @else if let Some(all) = active {
                dt { "Active" } dd { (format::seconds(all)) }
            }
            @for (name, reading) in &rows {
                @if let Reading::Present(part) = reading {
                    dt { (name) } dd { (facts::time_share(*part, active)) }
                }
            }
            @for (why, names) in &gaps {
                dt { (names.join(", ")) } dd.unknown { (format::NOT_MEASURED) ": " (why) }
            }
        }
    }
}

fn calibration(check: &Check) -> Markup {
    match &check.calibration {
        Reading::Present(calibration) => penalties(calibration),
        gap => html! {
            section {
                h2 { "What a fault and a touch cost here" }
                p.unknown { (gap_in_words(gap)) }
            }
        },
    }
}

fn unmeasured(check: &Check) -> Markup {
    let reasons = summary::unmeasured(check);
    html! {
        @if !reasons.is_empty() {
            section {
                h2 { "Not measured" }
                table {
                    thead { tr { th { "What" } th { "Why" } } }
                    tbody {
                        @for blind in &reasons {
                            tr {
                                td.source { (blind.rules_concerned()) }
                                td { (blind.why) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn own(check: &Check) -> Markup {
    html! {
        footer {
            p {
                "Run " code { (check.run) } ", " (count_of(check.databases.len() as u64, "database")) ". "
                @match &check.own {
                    Reading::Present(own) => {
                        "The check itself took " (format::seconds(own.cpu_s)) " of processor time"
                        @if let Some(tracing_s) = own.tracing_s.value() {
                            ", " (format::seconds(*tracing_s)) " of tracing in the kernel"
                        }
                        " and "
                        (format::bytes(own.rss_bytes)) " of memory."
                    },
                    gap => { "What the check itself took is not known: " (gap.why().unwrap_or_default()) "." },
                }
            }
            p {
                "Active time is the time of the database’s threads without idle waiting. "
                "Waits of unknown meaning do not count either; they widen the intervals. A tax is "
                "the share of active time that a cause takes. The interval is in brackets and "
                "drawn as a whisker."
            }
        }
    }
}
