//! Pages that open offline: one file, no scripts, nothing fetched.

mod check;
mod disks;
mod lab_matrix;
pub mod part;
mod timeline;
mod verification;

pub use check::check;
pub use lab_matrix::lab;
pub use timeline::{sections as timeline_sections, timeline};
pub use verification::verification;

use maud::html;
use part::Part;
use untax_core::Check;
use untax_core::lab::LabMatrix;
use untax_core::timeline::Timeline;
use untax_core::verdict::Verification;

/// A saved result that has a page.
pub enum Run {
    /// Of `untax check`.
    Check(Box<Check>),
    /// Of `untax verify`.
    Verification(Verification),
    /// Of a bench, which makes its part itself.
    Bench(Part),
    /// Of `untax lab matrix`.
    Lab(LabMatrix),
    /// Of `untax timeline`.
    Timeline(Box<Timeline>),
}

/// One page of several results, in this order.
pub fn report(runs: Vec<Run>) -> String {
    let parts = runs.into_iter().map(|run| match run {
        Run::Check(result) => check::part(&result),
        Run::Verification(result) => verification::part(&result),
        Run::Bench(part) => part,
        Run::Lab(result) => lab_matrix::part(&result),
        Run::Timeline(result) => timeline::part(&result),
    });
    let parts: Vec<Part> = parts.collect();
    if let [one] = &parts[..] {
        return one.page();
    }
    let body = html! { @for part in &parts { (part.body) } };
    let records: Vec<&str> = parts.iter().map(|part| part.record.as_str()).collect();
    let record = format!("[\n{}\n]", records.join(",\n"));
    Part { title: "untax report".to_owned(), body, record }.page()
}
