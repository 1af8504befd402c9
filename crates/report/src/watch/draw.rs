//! The whole screen: a line that says what is seen, the page, and a line with keys and own cost.

use super::state::{Page, State};
use super::widgets::{BOLD, DIM, PLAIN, WARN, clock, line, span, width};
use super::{detail, list};
use crate::terminal::screen::{pack, pad};
use crate::terminal::wrap;
use crate::{format, summary};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use untax_core::Check;

/// Draws the view.
pub fn draw(frame: &mut Frame, state: &State) {
    let area = frame.area();
    if area.height < 3 || area.width < 20 {
        frame.render_widget(Paragraph::new("too small"), area);
        return;
    }
    let room = usize::from(area.width);
    let row = |y: u16, height: u16| Rect { y, height, ..area };
    frame.render_widget(header(state, room), row(0, 1));
    let body = row(1, area.height - 2);
    frame.render_widget(Paragraph::new(page(state, room, body.height.into())), body);
    frame.render_widget(footer(state, room), row(area.height - 1, 1));
}

/// The part of the page that is shown.
fn page(state: &State, room: usize, height: usize) -> Vec<Line<'static>> {
    if state.help {
        return help();
    }
    let (lines, from) = match state.page {
        Page::Detail(from) => (detail::lines(state), from),
        Page::Text(from) => (detail::text(state), from),
        Page::List => {
            let (mut lines, selected) = list::lines(state);
            if state.latest.is_none() {
                let left = state.waiting_s.map(|left| format!("First window: {left} s left."));
                lines.push(line(
                    left.as_deref().unwrap_or("The first window is not over yet."),
                    DIM,
                ));
            } else if state.is_without_any() {
                lines.extend(nobody(room));
            }
            lines.extend(state.notes.iter().rev().take(3).map(|(note, _)| line(note, WARN)));
            // The selected row stays in sight, with what is above it where there is room.
            let from = selected.end.saturating_sub(height.max(1)).min(selected.start);
            (lines, from)
        }
    };
    lines.into_iter().skip(from).take(height).collect()
}

fn nobody(room: usize) -> Vec<Line<'static>> {
    let mut lines = vec![line("No database found on this host.", BOLD)];
    for text in summary::NO_DATABASE {
        lines.extend(wrap(text, room, 3).iter().map(|part| line(part, PLAIN)));
    }
    lines
}

fn header(state: &State, room: usize) -> Line<'static> {
    let latest = state.latest.as_deref();
    let mut segments = vec!["untax watch".to_owned()];
    if let Some(check) = latest {
        segments.push(match state.databases() {
            1 => "1 database".to_owned(),
            n => format!("{n} databases"),
        });
        segments.push(format!("window {} s", format::number(check.window_s)));
    }
    if state.is_typing() || !state.shown.filter.is_empty() {
        let cursor = if state.is_typing() { "_" } else { "" };
        segments.push(format!("filter: {}{cursor}", state.shown.filter));
    }
    if state.hidden() > 0 {
        segments.push(format!("{} hidden", state.hidden()));
    }
    let right = match (&state.held, latest) {
        (Some(held), _) => format!("PAUSED, {} held", held.len()),
        (None, Some(check)) => clock(check.taken_at),
        (None, None) => String::new(),
    };
    let left = room.saturating_sub(width(&right) + 1);
    let text = pack(&segments, left).first().map_or_else(String::new, Clone::clone);
    let style = Style::new().add_modifier(Modifier::REVERSED);
    Line::from(vec![
        span(pad(&text, left), style.add_modifier(Modifier::BOLD)),
        span(" ", style),
        span(right, style),
    ])
}

fn footer(state: &State, room: usize) -> Line<'static> {
    let sort = state.sort.name();
    let keys = [
        format!("q quit  p pause  s sort: {sort}  ↑↓ select  Enter open  ? help"),
        format!("q quit  p pause  s sort: {sort}  Enter open  ? help"),
        format!("q p s:{sort} ↑↓ Enter ?"),
        "q p s ↑↓ Enter ?".to_owned(),
    ];
    let costs = state.latest.as_deref().map(own_cost).unwrap_or_default();
    let fits = |keys: &String, cost: &String| width(keys) + 2 + width(cost) <= room;
    let pairs = keys.iter().flat_map(|keys| costs.iter().map(move |cost| (keys, cost)));
    let found = pairs.into_iter().find(|(keys, cost)| fits(keys, cost));
    let (keys, cost) = match found {
        Some((keys, cost)) => (keys.clone(), cost.clone()),
        None => (keys[3].clone(), String::new()),
    };
    let left = room.saturating_sub(width(&cost));
    Line::from(vec![Span::styled(pad(&keys, left), DIM), span(cost, DIM)])
}

/// What the view costs, from the longest way to say it to the shortest.
fn own_cost(check: &Check) -> Vec<String> {
    let Some(own) = check.own.value() else { return vec!["own cost not known".to_owned()] };
    let of_a_cpu = |seconds: f64| format::percent(seconds / check.window_s.max(f64::MIN_POSITIVE));
    let tracing_s = own.tracing_s.value().map(|seconds| seconds.0);
    let all = of_a_cpu(own.cpu_s.0 + tracing_s.unwrap_or(0.0));
    let memory = format::bytes(own.rss_bytes);
    let tracing = tracing_s.map(|seconds| format!(" (tracing {})", of_a_cpu(seconds)));
    vec![
        format!("own cost {all} of a CPU{}, {memory}", tracing.unwrap_or_default()),
        format!("own cost {all} of a CPU, {memory}"),
        format!("own {all} CPU"),
    ]
}

fn help() -> Vec<Line<'static>> {
    const HELP: [&str; 20] = [
        "q, Ctrl-C    quit; Esc goes back, then quits",
        "↑ ↓ j k      select, or scroll what is open",
        "Enter        open a database or a cause, and back",
        "p, space     hold the picture; windows wait",
        "s            sort by tax, name or active threads",
        "/            filter by name, port, pod …; Esc shows all again",
        "i            hide idle databases, or show them",
        "e, P         explain the selected cause; plan what to change",
        "x            save the last window as a check",
        "",
        "Bars of a database's active time:",
        "█ on CPU           D waiting for disks",
        "▓ waiting for one  M freeing memory",
        "▒ stopped by a     L waiting for locks",
        "  CPU limit        N sending",
        "",
        "Causes, a column for each window:",
        "▁▂▃▄▅▆▇█ tax  · looked for, not found",
        "? not measured: open it to see why",
        "any key closes this",
    ];
    HELP.iter().map(|text| line(text, PLAIN)).collect()
}
