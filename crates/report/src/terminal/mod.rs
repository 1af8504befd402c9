//! One screen of plain text.

mod advice;
mod check;
mod comparison;
mod demo;
mod lab;
mod node_classes;
mod plan;
pub mod screen;
mod style;
mod timeline;
mod verification;

pub use advice::advice;
pub use check::{Details, check};
pub use comparison::comparison;
pub use demo::demo;
pub(crate) use lab::{columns as lab_columns, time as lab_time};
pub use lab::{lab, lab_matrix};
pub use node_classes::node_classes;
pub use plan::plan;
pub use screen::wrap;
pub use style::Style;
pub use timeline::timeline;
pub use verification::verification;
