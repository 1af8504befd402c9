//! The list: each database with where its time goes now, and the tax of its causes over time.

use super::history::{Cause, History, Level};
use super::state::{Row, State};
use super::widgets::{
    BOLD, DIM, PLAIN, WARN, clock, severity, span, sparkline, stacked_bar, width,
};
use crate::terminal::screen::{fit, pack, pad, pad_left};
use crate::{facts, format, summary, time};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use untax_core::{Seconds, Tax};

/// Narrower than this, intervals and severities give way.
const WIDE: usize = 60;

/// The longest rule that is shown whole.
const RULE: usize = 26;

/// The lines of the list, and where those of the selected row begin and end.
pub fn lines(state: &State) -> (Vec<Line<'static>>, std::ops::Range<usize>) {
    let room = usize::from(state.size.0);
    let layout = Layout::of(state, room);
    let mut lines = Vec::new();
    let mut selected = 0..0;
    let mut add = |row: Row, mut new: Vec<Line<'static>>, lines: &mut Vec<Line<'static>>| {
        if state.selected.as_ref() == Some(&row) {
            selected = lines.len()..lines.len() + new.len();
            if let Some(first) = new.first_mut() {
                first.spans.insert(0, Span::styled("▸", BOLD));
                first.style = Style::new().add_modifier(Modifier::REVERSED);
            }
        } else if let Some(first) = new.first_mut() {
            first.spans.insert(0, Span::raw(" "));
        }
        lines.append(&mut new);
    };
    for history in state.in_order() {
        add(Row { key: history.key, rule: None }, database(state, history, room), &mut lines);
        for cause in history.causes() {
            let rule = Some(cause.finding.rule.clone());
            let line = layout.cause(history, cause);
            add(Row { key: history.key, rule }, vec![line], &mut lines);
        }
    }
    (lines, selected)
}

/// Threads that were active, in words.
fn active(history: &History) -> Option<String> {
    let threads = history.now()?.active.value()?;
    Some(format!("{} threads active", format::number(*threads)))
}

fn database(state: &State, history: &History, room: usize) -> Vec<Line<'static>> {
    let Some(db) = history.checked.as_deref() else {
        return vec![Line::from(span(history.name(), BOLD))];
    };
    let short = |tax: &Tax| tax.share.is_finite().then(|| format::tax_in_short(tax));
    let cost = match (&db.tax, &db.database_tax) {
        _ if history.ended.is_some() || history.moments.is_empty() => String::new(),
        _ if room >= WIDE => summary::both_taxes(db),
        (Some(platform), None) => short(platform).unwrap_or_else(|| summary::cost_in_short(db)),
        (platform, Some(database)) => {
            let platform = platform.as_ref().and_then(short);
            let platform = platform.unwrap_or_else(|| summary::cost_in_short(db));
            format!("{platform}, database {}", format::tax_in_short(database))
        }
        (None, None) => summary::cost_in_short(db),
    };
    let left = room.saturating_sub(1 + width(&cost) + 2);
    let mut segments = vec![facts::name(db)];
    let mut line = facts::database_line(db).into_iter();
    segments.extend(line.next());
    segments.extend(active(history));
    segments.extend(line);
    let head = pack(&segments, left).first().map_or_else(String::new, Clone::clone);
    let mut lines =
        vec![Line::from(vec![span(pad(&head, left), BOLD), span("  ", PLAIN), span(cost, BOLD)])];
    lines
        .extend(fate(history).map(|text| Line::from(span(fit(&format!("   {text}"), room), WARN))));
    if history.ended.is_none() {
        lines.push(time_line(history, room));
    }
    let steered = state.steered(history).map(|steered| format!("   {}", steered.line()));
    lines.extend(steered.map(|text| Line::from(span(fit(&text, room), DIM))));
    lines
}

/// What became of it.
pub fn fate(history: &History) -> Option<String> {
    if let Some(at) = history.ended {
        return Some(format!("ended, seen at {}", clock(at)));
    }
    let (pid, at) = history.restarted?;
    Some(format!("was pid {pid} until a restart seen at {}", clock(at)))
}

/// Where its time goes now; or why that is not known.
fn time_line(history: &History, room: usize) -> Line<'static> {
    let Some(db) = history.checked.as_deref() else { return Line::default() };
    let indent = 3;
    let room = room.saturating_sub(indent);
    let text = |text: String, style| {
        Line::from(vec![Span::raw(" ".repeat(indent)), span(fit(&text, room), style)])
    };
    if let Some(why) = db.time.active_s.why() {
        return text(untraced(history, &why), WARN);
    }
    let Some(shares) = time::shares(&db.time) else {
        return text(time::IDLE.to_owned(), DIM);
    };
    let bar = (room / 3).clamp(8, 40).min(room);
    let words = time::largest_parts(&shares);
    let words: Vec<String> =
        words.iter().map(|(name, share)| format!("{} {name}", format::percent(*share))).collect();
    let words = pack(&words, room.saturating_sub(bar + 1));
    let mut spans = vec![Span::raw(" ".repeat(indent))];
    spans.extend(stacked_bar(&shares, bar));
    spans.push(span(format!(" {}", words.first().map_or("", String::as_str)), PLAIN));
    Line::from(spans)
}

/// Why its time is not known, and what is known of it all the same.
fn untraced(history: &History, why: &str) -> String {
    let Some(db) = history.checked.as_deref() else { return why.to_owned() };
    let window_s = |seconds: &Seconds| format!("{} s", format::number(seconds.0));
    let on_cpu = db.time.on_cpu_s.value().map(|s| format!("{} on CPU; ", window_s(s)));
    format!("{}time not measured: {why}", on_cpu.unwrap_or_default())
}

/// Widths that all rows of causes share.
struct Layout {
    wide: bool,
    rule: usize,
    tax: usize,
    sparkline: usize,
    scale: f64,
}

/// What the rows of causes begin with.
const INDENT: usize = 3;
const SEVERITY: usize = 8;

impl Layout {
    fn of(state: &State, room: usize) -> Self {
        let wide = room >= WIDE;
        let causes = || state.histories.iter().flat_map(|history| &history.causes);
        let rule = causes().map(|cause| width(&cause.finding.rule)).max().unwrap_or(0);
        let rule = rule.min(RULE).min(room / 2);
        let tax = causes().map(|cause| width(&tax(cause, wide))).max().unwrap_or(0);
        let taken = INDENT + if wide { SEVERITY } else { 0 } + rule + 2 + tax + 2;
        let sparkline = room.saturating_sub(taken);
        Self { wide, rule, tax, sparkline, scale: scale(state, sparkline) }
    }

    fn cause(&self, history: &History, cause: &Cause) -> Line<'static> {
        let finding = &cause.finding;
        let ink = if cause.now { severity(finding.severity) } else { DIM };
        let levels = history.levels(&finding.rule, self.sparkline);
        let mut spans = vec![Span::raw(" ".repeat(INDENT - 1))];
        if self.wide {
            let word = if cause.now { summary::severity(finding.severity) } else { "" };
            spans.push(span(pad(word, SEVERITY), ink));
        }
        spans.push(span(pad(&finding.rule, self.rule), if cause.now { BOLD } else { DIM }));
        spans.push(span("  ", PLAIN));
        spans.push(span(sparkline(&levels, self.scale, self.sparkline), ink));
        spans.push(span("  ", PLAIN));
        spans.push(span(pad_left(&tax(cause, self.wide), self.tax), ink));
        Line::from(spans)
    }
}

/// The tax of a cause in the latest window.
fn tax(cause: &Cause, wide: bool) -> String {
    match (&cause.finding.tax, cause.now) {
        (_, false) => if wide { "not found now" } else { "–" }.to_owned(),
        (Some(tax), _) if !wide && tax.share.is_finite() => format::tax_in_short(tax),
        (None, _) if !wide => "?".to_owned(),
        (tax, _) => format::tax_or_not(tax.as_ref()),
    }
}

/// The end of the scale that all pictures of taxes share.
pub fn scale(state: &State, room: usize) -> f64 {
    let of = |history: &History| {
        let causes = history.causes.iter();
        let levels = causes.flat_map(|cause| history.levels(&cause.finding.rule, room));
        levels
            .map(|level| if let Level::Share(share) = level { share } else { 0.0 })
            .fold(0.0, f64::max)
    };
    summary::round_scale(state.histories.iter().map(of).fold(0.0, f64::max))
}
