//! One screen of plain text.

mod check;
mod comparison;
mod lab;
mod pages;
mod plan;
pub(crate) mod screen;
mod verification;

pub use check::check;
pub use comparison::comparison;
pub(crate) use lab::{columns as lab_columns, time as lab_time};
pub use lab::{lab, lab_matrix};
pub use pages::pages;
pub use plan::plan;
pub use screen::wrap;
pub use verification::verification;

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
