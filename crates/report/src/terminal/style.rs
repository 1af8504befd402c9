//! How the terminal is drawn on.

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours.
    pub colour: bool,
    /// Columns of the terminal. Lines are kept within it, between 40 and 100 columns.
    pub width: usize,
}

impl Default for Style {
    /// Eighty columns without colour: what a pipe gets.
    fn default() -> Self {
        Self { colour: false, width: 80 }
    }
}
