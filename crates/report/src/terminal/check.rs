//! The screen of `untax check`.

use super::Style;
use super::screen::{Ink, Screen, bar, pack, pad, pad_left, span, wrap};
use crate::{facts, format, summary, time};
use unicode_width::UnicodeWidthStr;
use untax_core::check::{Check, Checked};
use untax_core::{Finding, Scope, Severity};

/// More lines than this do not fit one screen; evidence then gives way.
const SCREEN_LINES: usize = 40;

/// Reasons shown before the rest is left to `--json`.
const REASONS: usize = 5;

/// Disks shown, those that do most for databases.
const DISKS: usize = 3;

/// Where text below a finding starts: two blanks, the severity, two blanks.
const INDENT: usize = 10;

/// Lines of a summary: it says the worst first.
const SUMMARY_LINES: usize = 3;

/// Lines of a fix with its gain.
const FIX_LINES: usize = 2;

/// Where the text of the closing sections starts.
const COLUMN: usize = 14;

/// How much a screen of a check shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Details {
    /// One screen: evidence where there is room, idle databases in a line.
    OneScreen,
    /// All, however long.
    All,
}

/// The result of a check on one screen, or all of it.
pub fn check(check: &Check, details: Details, style: Style) -> String {
    let full = draw(check, style, details, true);
    if details == Details::All || full.lines().count() <= SCREEN_LINES {
        return full;
    }
    draw(check, style, details, false)
}

fn draw(check: &Check, style: Style, details: Details, evidence: bool) -> String {
    let mut screen = Screen::new(style);
    let columns = Columns::of(check, screen.width);
    if check.databases.len() != 1 {
        answer(&mut screen, check);
    }
    if let Some(partial) = summary::seen_in_part(check) {
        screen.labelled("", 0, Ink::Bold, &partial, 2);
        screen.blank();
    }
    let (shown, idle) = match details {
        Details::OneScreen => summary::busy_and_idle(check),
        Details::All => (summary::databases_by_cost(check), Vec::new()),
    };
    for db in shown {
        database(&mut screen, db, &columns, evidence);
    }
    if let Some(idle) = summary::idle_line(&idle) {
        screen.labelled("", 0, Ink::Dim, &format!("{idle}; --all-details shows them"), 3);
        screen.blank();
    }
    if !check.findings.is_empty() {
        screen.line(&[span(Ink::Bold, "This host")]);
        for finding in summary::findings_in_order(&check.findings) {
            cause(&mut screen, finding, &columns, evidence);
        }
        screen.blank();
    }
    closing(&mut screen, check, evidence);
    screen.finish()
}

/// Widths that all rows of causes share.
struct Columns {
    rule: usize,
    tax: usize,
    bar: usize,
    scale: f64,
}

impl Columns {
    fn of(check: &Check, width: usize) -> Self {
        let findings = check.databases.iter().flat_map(|db| &db.findings).chain(&check.findings);
        Self::for_rows(findings, summary::scale(check), width)
    }

    fn for_rows<'a>(
        rows: impl Iterator<Item = &'a Finding> + Clone,
        scale: f64,
        width: usize,
    ) -> Self {
        let rule = rows.clone().map(|f| format::clean(&f.rule).width()).max().unwrap_or(0).min(25);
        let tax = rows.map(|f| format::tax_or_not(f.tax.as_ref()).width()).max().unwrap_or(0);
        let bar = width.saturating_sub(INDENT + rule + tax + 4);
        Self { rule, tax, bar, scale }
    }
}

/// The first line, where there is not exactly one database.
fn answer(screen: &mut Screen, check: &Check) {
    screen.line(&[span(Ink::Bold, format!("{}.", summary::headline(check)))]);
    if check.databases.is_empty() {
        for line in summary::without_database(check) {
            screen.line(&[span(Ink::Plain, format!("  {line}"))]);
        }
    }
    screen.blank();
}

fn database(screen: &mut Screen, db: &Checked, columns: &Columns, evidence: bool) {
    let (name, cost) = (facts::name(db), summary::platform_tax(db));
    let mut segments = facts::database_line(db);
    let mut head = name;
    let room = screen.width.saturating_sub(cost.width() + 2);
    while !segments.is_empty() && head.width() + 3 + segments[0].width() <= room {
        head = format!("{head} · {}", segments.remove(0));
    }
    screen.ends((Ink::Bold, &head), (cost_ink(db), &cost));
    if let Some(own) = summary::database_tax(db) {
        screen.ends((Ink::Plain, ""), (Ink::Bold, &own));
    }
    screen.segments("", 0, Ink::Dim, &segments);
    screen.segments("", 0, Ink::Plain, &time::line(db));
    if evidence {
        screen.segments("", 0, Ink::Plain, &time::ledger(db));
    }
    screen.blank();
    for scope in Scope::ALL {
        let findings = summary::findings_of(&db.findings, scope);
        if scope == Scope::Database && !findings.is_empty() {
            screen.line(&[span(Ink::Dim, format!("  {}", summary::OF_DATABASE))]);
        }
        for finding in findings {
            cause(screen, finding, columns, evidence);
        }
    }
    if !db.findings.is_empty() {
        screen.blank();
    }
}

fn cost_ink(db: &Checked) -> Ink {
    match summary::cost(db) {
        summary::Cost::Measured(_) => Ink::Bold,
        summary::Cost::NotMeasured => Ink::Yellow,
        summary::Cost::NothingFound { .. } => Ink::Green,
    }
}

fn severity_ink(severity: Severity) -> Ink {
    match severity {
        Severity::High => Ink::Red,
        Severity::Medium => Ink::Yellow,
        Severity::Low => Ink::Blue,
        Severity::Info => Ink::Dim,
    }
}

/// One finding as the screen of a check shows it.
pub(super) fn finding(screen: &mut Screen, finding: &Finding) {
    let scale = summary::round_scale(finding.tax.as_ref().map_or(1.0, |tax| tax.high));
    let columns = Columns::for_rows(std::iter::once(finding), scale, screen.width);
    cause(screen, finding, &columns, true);
}

fn cause(screen: &mut Screen, finding: &Finding, columns: &Columns, evidence: bool) {
    let ink = severity_ink(finding.severity);
    let tax = format::tax_or_not(finding.tax.as_ref());
    let drawn = finding
        .tax
        .as_ref()
        .map_or(String::new(), |t| bar(t.share, t.high, columns.scale, columns.bar));
    screen.line(&[
        span(ink, format!("  {:<8}", summary::severity(finding.severity))),
        span(Ink::Bold, pad(&finding.rule, columns.rule + 2)),
        span(ink, pad(&drawn, columns.bar)),
        span(Ink::Plain, "  "),
        span(
            if finding.tax.is_some() { Ink::Plain } else { Ink::Dim },
            pad_left(&tax, columns.tax),
        ),
    ]);
    screen.labelled("", INDENT, Ink::Plain, &finding.summary, SUMMARY_LINES);
    if evidence && !finding.evidence.is_empty() {
        let items = finding.evidence.iter().map(|e| format!("{} {}", e.name, format::evidence(e)));
        let line = pack(&items.collect::<Vec<_>>(), screen.width.saturating_sub(INDENT));
        screen.labelled("", INDENT, Ink::Dim, line.first().map_or("", String::as_str), 1);
    }
    let fix = format!("fix: {}", finding.fix);
    let mut gains: Vec<String> = Vec::new();
    gains.extend(finding.gain.as_ref().map(|gain| format!("gain {}", format::gain(gain))));
    let latency = finding.latency_gain.filter(|_| format::latency_says_more(finding));
    gains.extend(latency.map(|gain| format!("latency {}", format::latency_gain(&gain))));
    // Tied together, so that a number never ends up on a line without its meaning.
    let gains: Vec<String> =
        gains.iter().map(|gain| gain.replace(' ', &format::THIN.to_string())).collect();
    let both = std::iter::once(fix.clone()).chain(gains.clone()).collect::<Vec<_>>().join("; ");
    if wrap(&both, screen.width.saturating_sub(INDENT), usize::MAX).len() <= FIX_LINES {
        screen.labelled("", INDENT, Ink::Plain, &both, FIX_LINES);
    } else {
        // What is cut is the fix, which explain has in full, and never a gain.
        screen.labelled("", INDENT, Ink::Plain, &fix, FIX_LINES);
        screen.labelled("", INDENT, Ink::Plain, &gains.join("; "), usize::MAX);
    }
}

fn closing(screen: &mut Screen, check: &Check, details: bool) {
    let reasons = summary::unmeasured(check);
    for (i, blind) in reasons.iter().take(REASONS).enumerate() {
        let label = if i == 0 { "Not measured" } else { "" };
        let text = format!("{}: {}", blind.rules_concerned(), blind.why);
        screen.labelled(label, COLUMN, Ink::Plain, &text, 2);
    }
    if reasons.len() > REASONS {
        let rest = format!("and {} more; --json has all", reasons.len() - REASONS);
        screen.labelled("", COLUMN, Ink::Dim, &rest, 1);
    }
    let disks = check.io.value().filter(|_| details).map(facts::disk_lines);
    for (i, line) in disks.unwrap_or_default().iter().take(DISKS).enumerate() {
        screen.segments(if i == 0 { "Disks" } else { "" }, COLUMN, Ink::Plain, line);
    }
    screen.segments("Host", COLUMN, Ink::Plain, &facts::host_line(&check.host));
    screen.segments("This check", COLUMN, Ink::Dim, &own_line(check));
    commands(screen, COLUMN, &next(check));
}

/// Commands to type next, and what each is for.
pub(super) fn commands(screen: &mut Screen, column: usize, commands: &[(String, &'static str)]) {
    let widest = commands.iter().map(|(command, _)| command.width()).max().unwrap_or(0);
    for (i, (command, what)) in commands.iter().enumerate() {
        let label = if i == 0 { "Next" } else { "" };
        let line = [
            span(Ink::Dim, pad(label, column)),
            span(Ink::Bold, pad(command, widest + 2)),
            span(Ink::Dim, *what),
        ];
        screen.line(&line);
    }
}

fn own_line(check: &Check) -> Vec<String> {
    let mut line = vec![if check.window_s > 0.0 {
        format!("window {}{}s", format::number(check.window_s), format::THIN)
    } else {
        "no window: facts only".to_owned()
    }];
    line.extend(check.own.value().map(|own| {
        let tracing = own.tracing_s.value().map(|s| format!(" + {} tracing", format::seconds(*s)));
        let (cpu, tracing) = (format::seconds(own.cpu_s), tracing.unwrap_or_default());
        format!("cost {cpu} CPU{tracing}, {}", format::bytes(own.rss_bytes))
    }));
    // One that was not saved has no name.
    line.extend((!check.run.is_empty()).then(|| format!("run {}", check.run)));
    line
}

/// The commands that lead on from here.
fn next(check: &Check) -> Vec<(String, &'static str)> {
    let databases = summary::databases_by_cost(check);
    let all = databases.iter().flat_map(|db| summary::findings_in_order(&db.findings));
    let all: Vec<_> = all.chain(summary::findings_in_order(&check.findings)).collect();
    let mut next = Vec::new();
    if let Some(first) = all.first() {
        next.push((format!("untax explain {}", first.rule), "what it is and how it is measured"));
    }
    if all.iter().any(|finding| finding.severity > Severity::Info) {
        next.push(("untax plan".to_owned(), "what to change, step by step"));
    }
    if check.unseen().next().is_some() {
        next.push(("untax doctor".to_owned(), "why only a part was seen, and how to see all"));
    }
    next.push(("untax bench pages".to_owned(), "what page size is worth on this host"));
    next
}
