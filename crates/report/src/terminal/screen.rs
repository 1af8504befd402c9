//! Lines of cells that never exceed the width and never carry a control character of their own.

use super::Style;
use crate::format::{THIN, clean};
use anstyle::{AnsiColor, Color};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Narrower than this nothing can be aligned; wider than this a line is hard to follow.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=100;

/// How a piece of text looks when colours are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// As the terminal writes.
    Plain,
    /// Bold.
    Bold,
    /// Less than the rest.
    Dim,
    /// Bad.
    Red,
    /// To be noticed.
    Yellow,
    /// Good.
    Green,
    /// Neutral.
    Blue,
}

impl Ink {
    fn style(self) -> anstyle::Style {
        let colour = |c: AnsiColor| anstyle::Style::new().fg_color(Some(Color::Ansi(c)));
        match self {
            Self::Plain => anstyle::Style::new(),
            Self::Bold => anstyle::Style::new().bold(),
            Self::Dim => anstyle::Style::new().dimmed(),
            Self::Red => colour(AnsiColor::Red).bold(),
            Self::Yellow => colour(AnsiColor::Yellow),
            Self::Green => colour(AnsiColor::Green),
            Self::Blue => colour(AnsiColor::Blue),
        }
    }
}

/// A piece of a line.
pub struct Span {
    ink: Ink,
    text: String,
}

/// A piece of a line in an ink.
pub fn span(ink: Ink, text: impl Into<String>) -> Span {
    Span { ink, text: text.into() }
}

/// The screen that is being written.
pub struct Screen {
    /// Columns of a line.
    pub width: usize,
    colour: bool,
    out: String,
}

impl Screen {
    /// An empty screen.
    pub fn new(style: Style) -> Self {
        let width = style.width.clamp(*WIDTHS.start(), *WIDTHS.end());
        Self { width, colour: style.colour, out: String::new() }
    }

    /// Writes one line. Whatever it is made of is cleaned and cut here, so no caller can forget.
    pub fn line(&mut self, spans: &[Span]) {
        let mut left = self.width;
        let mut pieces: Vec<(Ink, String)> = Vec::new();
        for Span { ink, text } in spans {
            let text = fit(text, left);
            left -= text.width();
            pieces.push((*ink, text.replace(THIN, " ")));
        }
        while pieces.last().is_some_and(|(_, text)| text.trim_end().is_empty()) {
            pieces.pop();
        }
        if let Some((_, text)) = pieces.last_mut() {
            text.truncate(text.trim_end().len());
        }
        for (ink, text) in pieces {
            if self.colour && ink != Ink::Plain && !text.trim().is_empty() {
                let style = ink.style();
                let _ = write!(self.out, "{style}{text}{style:#}");
            } else {
                self.out.push_str(&text);
            }
        }
        self.out.push('\n');
    }

    /// Writes an empty line.
    pub fn blank(&mut self) {
        self.out.push('\n');
    }

    /// A label in a column of its own and text broken into at most `lines` lines beside it.
    pub fn labelled(&mut self, label: &str, column: usize, ink: Ink, text: &str, lines: usize) {
        for (i, part) in wrap(text, self.width.saturating_sub(column), lines).iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            self.line(&[span(Ink::Dim, pad(label, column)), span(ink, part)]);
        }
    }

    /// Segments joined by dots, broken between segments.
    pub fn segments(&mut self, label: &str, column: usize, ink: Ink, segments: &[String]) {
        for (i, part) in pack(segments, self.width.saturating_sub(column)).iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            self.line(&[span(Ink::Dim, pad(label, column)), span(ink, part)]);
        }
    }

    /// A line with one end at each margin; what is on the left is cut when they would meet.
    pub fn ends(&mut self, left: (Ink, &str), right: (Ink, &str)) {
        let room = self.width.saturating_sub(clean(right.1).width() + 2);
        let padded = pad(left.1, room);
        self.line(&[span(left.0, padded), span(Ink::Plain, "  "), span(right.0, right.1)]);
    }

    /// All that was written.
    pub fn finish(self) -> String {
        self.out
    }
}

/// The text cleaned, and cut with an ellipsis when it is wider than `room`.
pub fn fit(text: &str, room: usize) -> String {
    let text = clean(text);
    if text.width() <= room {
        return text.into_owned();
    }
    let mut out = String::new();
    let mut left = room.saturating_sub(1);
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        out.push(c);
    }
    if room > 0 {
        out.push('…');
    }
    out
}

/// Fits the text and fills it up with blanks on the right.
pub fn pad(text: &str, room: usize) -> String {
    let mut text = fit(text, room);
    let missing = room.saturating_sub(text.width());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Fits the text and fills it up with blanks on the left.
pub fn pad_left(text: &str, room: usize) -> String {
    let text = fit(text, room);
    let missing = room.saturating_sub(text.width());
    " ".repeat(missing) + &text
}

/// Breaks text at spaces, and words wider than a line anywhere, into at most `lines` lines; the last one is
/// cut if more would follow.
pub fn wrap(text: &str, room: usize, lines: usize) -> Vec<String> {
    let text = clean(text);
    let mut out: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').flat_map(|word| pieces(word, room)).filter(|w| !w.is_empty()) {
        let fits = line.is_empty() || line.width() + 1 + word.width() <= room;
        if !fits && out.len() + 1 < lines {
            out.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        out.push(line);
    }
    out.iter().map(|l| fit(l, room)).collect()
}

/// A word in pieces that have room in a line each.
fn pieces(word: &str, room: usize) -> Vec<&str> {
    let (mut all, mut from, mut wide) = (Vec::new(), 0, 0);
    for (at, c) in word.char_indices() {
        let width = c.width().unwrap_or(0);
        if wide + width > room && at > from {
            all.push(&word[from..at]);
            (from, wide) = (at, 0);
        }
        wide += width;
    }
    all.push(&word[from..]);
    all
}

/// Joins segments with dots into as few lines as hold them.
pub fn pack(segments: &[String], room: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for segment in segments {
        let segment = clean(segment);
        match out.last_mut() {
            Some(line) if line.width() + 3 + segment.width() <= room => {
                line.push_str(" · ");
                line.push_str(&segment);
            }
            _ => out.push(fit(&segment, room)),
        }
    }
    out
}

/// A bar of `room` cells for a share of `scale`: solid up to the estimate, light up to the upper
/// bound. Anything above zero shows at least half a cell.
pub fn bar(mid: f64, high: f64, scale: f64, room: usize) -> String {
    let halves = |v: f64| {
        let share = (v / scale).clamp(0.0, 1.0);
        let halves = (share * 2.0 * room as f64).round() as usize;
        if share > 0.0 { halves.max(1) } else { 0 }
    };
    let solid = halves(mid);
    let mut out = "█".repeat(solid / 2);
    if solid % 2 == 1 {
        out.push('▌');
    }
    let used = solid.div_ceil(2);
    let light = (halves(high) / 2).saturating_sub(used);
    out.push_str(&"░".repeat(light));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns_not_by_bytes() {
        assert_eq!(fit("数据库", 6), "数据库");
        assert_eq!(fit("数据库", 5), "数据…");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(pad("ab", 4), "ab  ");
        assert_eq!(pad_left("ab", 4), "  ab");
        assert_eq!(fit("a\x1b[31m", 4), "a\\u…");
    }

    #[test]
    fn wrapping_ends_with_an_ellipsis_only_when_text_is_lost() {
        assert_eq!(wrap("one two three", 8, 2), ["one two", "three"]);
        assert_eq!(wrap("one two three four", 8, 2), ["one two", "three f…"]);
        assert_eq!(wrap("", 8, 2), Vec::<String>::new());
        assert_eq!(wrap("a bcdefghijkl m", 4, 5), ["a", "bcde", "fghi", "jkl", "m"]);
        assert_eq!(wrap("a bcdefghijkl m", 4, 2), ["a", "bcd…"]);
    }

    #[test]
    fn bars_show_the_estimate_and_what_it_may_reach() {
        assert_eq!(bar(0.5, 0.75, 1.0, 8), "████░░");
        assert_eq!(bar(0.001, 0.001, 1.0, 8), "▌");
        assert_eq!(bar(0.0, 0.0, 1.0, 8), "");
        assert_eq!(bar(2.0, 3.0, 1.0, 4), "████");
    }
}
