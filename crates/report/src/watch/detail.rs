//! What is opened: a database with its time over time, or one cause with all that is known of it.

use super::history::{Cause, History, Moment};
use super::list::{fate, scale};
use super::state::State;
use super::widgets::{
    BOLD, DIM, PLAIN, UNKNOWN, WARN, clock, columns, line, severity, sign, span, stacked_columns,
};
use crate::terminal::screen::pack;
use crate::terminal::wrap;
use crate::{facts, format, summary, time};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Rows of a picture where there is room for it.
const PICTURE: usize = 8;
const SMALL_PICTURE: usize = 4;

/// More lines of one text than this are left to `--json`.
const LINES: usize = 12;

/// The lines of what is selected.
pub fn lines(state: &State) -> Vec<Line<'static>> {
    let Some(row) = &state.selected else { return Vec::new() };
    let Some(history) = state.history(row.key) else { return Vec::new() };
    let room = usize::from(state.size.0);
    let named = |cause: &&Cause| Some(&cause.finding.rule) == row.rule.as_ref();
    let mut page = Page { room, rows: usize::from(state.body()), lines: Vec::new() };
    match history.causes.iter().find(named) {
        Some(cause) => page.cause(state, history, cause),
        None => page.database(state, history),
    }
    page.lines
}

/// The lines of a text that was asked for.
pub fn text(state: &State) -> Vec<Line<'static>> {
    let room = usize::from(state.size.0);
    let wrapped = |text: &str| -> Vec<Line<'static>> {
        let indent = text.len() - text.trim_start().len();
        let parts = wrap(text.trim_start(), room.saturating_sub(indent), usize::MAX);
        let whole = |part: &String| line(format!("{}{part}", " ".repeat(indent)), PLAIN);
        if parts.is_empty() { vec![Line::default()] } else { parts.iter().map(whole).collect() }
    };
    state.text.lines().flat_map(wrapped).collect()
}

struct Page {
    room: usize,
    rows: usize,
    lines: Vec<Line<'static>>,
}

impl Page {
    fn text(&mut self, text: &str, style: Style) {
        let wrapped = wrap(text, self.room, LINES);
        self.lines.extend(wrapped.iter().map(|part| line(part, style)));
    }

    fn labelled(&mut self, label: &str, text: &str) {
        let indent = 10.min(self.room / 3);
        for (i, part) in wrap(text, self.room.saturating_sub(indent), LINES).iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            self.lines
                .push(Line::from(vec![span(format!("{label:<indent$}"), DIM), span(part, PLAIN)]));
        }
    }

    fn picture_rows(&self) -> usize {
        if self.rows >= 20 { PICTURE } else { SMALL_PICTURE }
    }

    fn database(&mut self, state: &State, history: &History) {
        self.text(&history.name(), BOLD);
        if let Some(text) = fate(history) {
            self.text(&text, WARN);
        }
        if let Some(db) = history.checked.as_deref() {
            for part in pack(&facts::database_line(db), self.room) {
                self.lines.push(line(part, PLAIN));
            }
            self.lines.push(Line::default());
            self.time(history);
            self.text(&summary::platform_tax(db), BOLD);
            if let Some(text) = summary::database_tax(db) {
                self.text(&text, BOLD);
            }
        }
        if let Some(steered) = state.steered(history) {
            self.text(&steered.line(), PLAIN);
            self.text(&steered.trial(), PLAIN);
        }
        self.lines.push(Line::default());
        for cause in history.causes().into_iter().filter(|cause| cause.now) {
            let tax = format::tax_or_not(cause.finding.tax.as_ref());
            self.text(&format!("{}: {tax}", cause.finding.rule), severity(cause.finding.severity));
        }
        for gap in &history.unmeasured {
            self.text(&format!("{} not measured: {}", gap.rule, gap.why), PLAIN);
        }
    }

    /// Where its time went, one column for each window.
    fn time(&mut self, history: &History) {
        let window = |moment: &Option<Moment>| match moment {
            None => Err(' '),
            Some(Moment { parts: Some(parts), .. }) => Ok(*parts),
            Some(Moment { active, .. }) if active.is_present() => Err('·'),
            Some(_) => Err(UNKNOWN),
        };
        let windows: Vec<_> = history.latest(self.room).map(window).collect();
        let rows = self.picture_rows();
        self.text("Where its time went, a column for each window", DIM);
        self.lines.extend(stacked_columns(&windows, self.room, rows));
        let Some(now) = history.now() else { return };
        for (name, share) in now.parts.as_ref().map(time::largest_parts).unwrap_or_default() {
            let words = format!(" {name} {}", format::percent(share));
            self.lines.push(Line::from(vec![sign(name), span(words, PLAIN)]));
        }
        if let Some(unknown) = history.checked.as_deref().and_then(|db| time::unknown(&db.time)) {
            self.text(&unknown, WARN);
        }
        let ledger = history.checked.as_deref().map(time::ledger).unwrap_or_default();
        for part in pack(&ledger, self.room) {
            self.lines.push(line(part, PLAIN));
        }
        match now.active.why() {
            Some(why) => self.text(&format!("{UNKNOWN} time not measured: {why}"), WARN),
            None if now.parts.is_none() => self.text(&format!("· {}", time::IDLE), DIM),
            None => {}
        }
        self.lines.push(Line::default());
    }

    fn cause(&mut self, state: &State, history: &History, cause: &Cause) {
        let finding = &cause.finding;
        self.lines.push(Line::from(vec![
            span(&finding.rule, BOLD),
            span(
                format!("  {}  ", summary::severity(finding.severity)),
                severity(finding.severity),
            ),
            span(history.name(), DIM),
        ]));
        self.text(&finding.summary, PLAIN);
        self.lines.push(Line::default());
        self.history(state, history, cause);
        match (&finding.tax, cause.now) {
            (Some(tax), true) => self.labelled("Tax", &format::tax(tax)),
            (None, true) => self.labelled("Tax", &not_measured(history, &finding.rule)),
            (_, false) => {
                let seen = format!("not found now; found last at {}", clock(cause.seen));
                self.labelled("Tax", &seen);
            }
        }
        if let Some(tax) = &finding.tax {
            self.labelled("Method", &tax.method);
        }
        if let Some(gain) = &finding.gain {
            self.labelled("Gain", &format::gain(gain));
        }
        let latency = finding.latency_gain.filter(|_| format::latency_says_more(finding));
        if let Some(gain) = &latency {
            self.labelled("Latency", &format::latency_gain(gain));
        }
        self.labelled("Fix", &finding.fix);
        for (i, evidence) in finding.evidence.iter().enumerate() {
            let source = match evidence.source.as_str() {
                "" => String::new(),
                source => format!(" ({source})"),
            };
            let text = format!("{} {}{source}", evidence.name, format::evidence(evidence));
            self.labelled(if i == 0 { "Evidence" } else { "" }, &text);
        }
        self.labelled("More", &format!("untax explain {}", finding.rule));
    }

    fn history(&mut self, state: &State, history: &History, cause: &Cause) {
        let scale = scale(state, self.room);
        let top = format!("{} ", format::percent(scale));
        let indent = super::widgets::width(&top);
        let room = self.room.saturating_sub(indent);
        let levels = history.levels(&cause.finding.rule, room);
        let rows = columns(&levels, scale, room, self.picture_rows());
        for (i, row) in rows.into_iter().enumerate() {
            let label = if i == 0 { top.clone() } else { " ".repeat(indent) };
            let style = severity(cause.finding.severity);
            self.lines.push(Line::from(vec![span(label, DIM), Span::styled(row, style)]));
        }
        self.lines.push(Line::default());
    }
}

fn not_measured(history: &History, rule: &str) -> String {
    let why = history.unmeasured.iter().find(|gap| gap.rule == rule).map(|gap| gap.why.as_str());
    why.map_or_else(
        || format::NOT_MEASURED.to_owned(),
        |why| format!("{}: {why}", format::NOT_MEASURED),
    )
}
