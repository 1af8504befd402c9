//! Tables on the screen of a bench.

use unicode_width::UnicodeWidthStr;
use untax_report::format;
use untax_report::terminal::screen::{Ink, Screen, pad, pad_left, span};

/// A table's column: its head, whether it is aligned right, and its cells.
pub(crate) struct Column<'a> {
    head: &'a str,
    right: bool,
    cells: Vec<String>,
}

/// A column of these cells.
pub(crate) fn column(head: &str, right: bool, cells: impl Iterator<Item = String>) -> Column<'_> {
    Column { head, right, cells: cells.collect() }
}

/// Rows with a group and an ink each.
pub(crate) struct Table<'a> {
    pub(crate) columns: &'a [Column<'a>],
    /// The group of each row: a blank line separates groups.
    pub(crate) groups: &'a [u64],
    pub(crate) inks: &'a [Ink],
    /// The widest that a column gets.
    pub(crate) widest: usize,
}

impl Table<'_> {
    /// Draws it, with a blank line below.
    pub(crate) fn draw(&self, screen: &mut Screen) {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .map(|c| c.cells.iter().map(|x| format::clean(x).width()).max().unwrap_or(0))
            .zip(self.columns)
            .map(|(widest, c)| widest.max(c.head.width()).min(self.widest))
            .collect();
        let line = |texts: Vec<&str>, ink: Ink| {
            let cells = texts.into_iter().zip(self.columns).zip(&widths);
            let cells = cells.map(|((text, c), width)| {
                let text = if c.right { pad_left(text, *width) } else { pad(text, *width) };
                span(ink, format!("  {text}"))
            });
            cells.collect::<Vec<_>>()
        };
        screen.line(&line(self.columns.iter().map(|c| c.head).collect(), Ink::Dim));
        for (i, ink) in self.inks.iter().enumerate() {
            if i > 0 && self.groups[i] != self.groups[i - 1] {
                screen.blank();
            }
            screen.line(&line(self.columns.iter().map(|c| c.cells[i].as_str()).collect(), *ink));
        }
        screen.blank();
    }
}
