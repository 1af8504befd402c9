//! A result in the form that was asked for.

use super::schema::PlatformBench;
use super::{html, markdown, terminal};
use crate::experiment::{BenchResult, Ending};
use untax_report::html::part::Part;
use untax_report::terminal::Style;

/// A result and the form that was asked for.
pub(super) struct Shown {
    pub(super) bench: PlatformBench,
    pub(super) form: Form,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Screen,
    Markdown,
    /// What there is, without any figure.
    List,
}

impl BenchResult for Shown {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&self.bench)
    }

    fn terminal(&self, style: Style) -> String {
        match self.form {
            Form::Screen => terminal::screen(&self.bench, style),
            Form::Markdown => markdown::text(&self.bench),
            Form::List => terminal::list(&self.bench, style),
        }
    }

    fn html(&self) -> Part {
        html::part(&self.bench)
    }

    fn ending(&self) -> Ending {
        if !self.bench.complete {
            Ending::Interrupted
        } else if self.bench.guards.iter().any(|guard| guard.failed) {
            Ending::GuardFailed
        } else {
            Ending::Clean
        }
    }
}
