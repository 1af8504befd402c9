//! Pieces of lines: text that is safe to show, and small pictures made of characters. Each picture
//! can be read without colours.

use super::history::Level;
use crate::format::{THIN, clean};
use jiff::Timestamp;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;
use untax_core::Severity;

/// Stands where something is not known.
pub const UNKNOWN: char = '?';

/// Stands where nothing was found.
const NOTHING: char = '·';

/// From the least to all of a cell.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub const PLAIN: Style = Style::new();
pub const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub const WARN: Style = Style::new().fg(Color::Yellow);

/// How each of [`crate::time::PARTS`] is drawn.
const PARTS: [(char, Style); 8] = [
    ('█', Style::new().fg(Color::Green)),
    ('▓', Style::new().fg(Color::Yellow)),
    ('W', Style::new().fg(Color::Black).bg(Color::Yellow)),
    ('▒', Style::new().fg(Color::Red)),
    ('D', Style::new().fg(Color::Black).bg(Color::Blue)),
    ('M', Style::new().fg(Color::Black).bg(Color::Magenta)),
    ('L', Style::new().fg(Color::Black).bg(Color::Cyan)),
    ('N', Style::new().fg(Color::Black).bg(Color::White)),
];

/// A piece of text. Whatever it is made of is cleaned here, so no caller can forget.
pub fn span(text: impl AsRef<str>, style: Style) -> Span<'static> {
    Span::styled(clean(text.as_ref()).replace(THIN, " "), style)
}

/// A line of one piece.
pub fn line(text: impl AsRef<str>, style: Style) -> Line<'static> {
    Line::from(span(text, style))
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    clean(text).width()
}

pub fn severity(severity: Severity) -> Style {
    match severity {
        Severity::High => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        Severity::Medium => WARN,
        Severity::Low => Style::new().fg(Color::Blue),
        Severity::Info => DIM,
    }
}

/// The time of the day, UTC.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%SZ").to_string()
}

/// One character for each window, the latest at the right end of `room`.
pub fn sparkline(levels: &[Level], scale: f64, room: usize) -> String {
    let one = |level: &Level| match level {
        Level::NotThere => ' ',
        Level::Nothing => NOTHING,
        Level::Unmeasured => UNKNOWN,
        Level::Share(share) => part_of_cell(*share / scale, 8),
    };
    let picture: String = levels.iter().map(one).collect();
    let missing = room.saturating_sub(levels.len());
    " ".repeat(missing) + &picture
}

/// The character for so many of `all` eighths; anything above nothing shows.
fn part_of_cell(share: f64, all: usize) -> char {
    let eighths = (share * all as f64).round().clamp(0.0, 8.0) as usize;
    match eighths {
        0 if share > 0.0 => EIGHTHS[0],
        0 => NOTHING,
        n => EIGHTHS[n - 1],
    }
}

/// The same as columns of several rows, the first row on top.
pub fn columns(levels: &[Level], scale: f64, room: usize, rows: usize) -> Vec<String> {
    let cell = |level: &Level, below: usize| match level {
        Level::Share(share) => {
            let left = *share / scale * rows as f64 - below as f64;
            if left <= 0.0 && below > 0 { ' ' } else { part_of_cell(left, 8) }
        }
        other if below == 0 => match other {
            Level::Nothing => NOTHING,
            Level::Unmeasured => UNKNOWN,
            _ => ' ',
        },
        _ => ' ',
    };
    let missing = " ".repeat(room.saturating_sub(levels.len()));
    let row = |below| missing.clone() + &levels.iter().map(|l| cell(l, below)).collect::<String>();
    (0..rows).rev().map(row).collect()
}

/// Which part is at this place of a bar that all of them share, from 0 to 1.
fn part_at(shares: &[f64; 8], place: f64) -> Option<usize> {
    let mut until = 0.0;
    shares.iter().position(|share| {
        until += share;
        place < until
    })
}

fn part_span(part: Option<usize>) -> Span<'static> {
    part.and_then(|part| PARTS.get(part))
        .map_or_else(|| Span::raw(" "), |(glyph, style)| Span::styled(glyph.to_string(), *style))
}

/// A bar of the parts of the active time.
pub fn stacked_bar(shares: &[f64; 8], room: usize) -> Vec<Span<'static>> {
    let place = |at: usize| (at as f64 + 0.5) / room as f64;
    (0..room).map(|at| part_span(part_at(shares, place(at)))).collect()
}

/// Upright bars, one column for each window: the first line on top. A column without parts
/// has the character that is given with it at its foot.
pub fn stacked_columns(
    windows: &[Result<[f64; 8], char>],
    room: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    let cell = |window: &Result<[f64; 8], char>, below: usize| match window {
        Ok(shares) => part_span(part_at(shares, (below as f64 + 0.5) / rows as f64)),
        Err(foot) if below == 0 => Span::styled(foot.to_string(), DIM),
        Err(_) => Span::raw(" "),
    };
    let missing = " ".repeat(room.saturating_sub(windows.len()));
    let row = |below| {
        let cells = windows.iter().map(|window| cell(window, below));
        std::iter::once(Span::raw(missing.clone())).chain(cells).collect()
    };
    (0..rows).rev().map(row).collect()
}

/// The sign of a part of the active time, by its name.
pub fn sign(name: &str) -> Span<'static> {
    part_span(crate::time::PARTS.iter().position(|part| *part == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_never_drawn_as_nothing() {
        let levels = [
            Level::NotThere,
            Level::Nothing,
            Level::Unmeasured,
            Level::Share(0.001),
            Level::Share(0.4),
        ];
        assert_eq!(sparkline(&levels, 0.4, 7), "   ·?▁█");
        assert_eq!(columns(&levels, 0.4, 5, 2), ["    █", " ·?▁█"]);
    }

    #[test]
    fn a_bar_is_shared_by_the_parts() {
        let text = |spans: &[Span]| spans.iter().map(|s| s.content.to_string()).collect::<String>();
        let shares = [0.5, 0.25, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0];
        assert_eq!(text(&stacked_bar(&shares, 8)), "████▓▓DD");
        let lines = stacked_columns(&[Ok(shares), Err('?')], 3, 4);
        let lines: Vec<String> = lines.iter().map(|line| text(&line.spans)).collect();
        assert_eq!(lines, [" D ", " ▓ ", " █ ", " █?"]);
    }
}
