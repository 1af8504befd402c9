//! What a remedy is planned from.

use untax_core::plan::Sizing;
use untax_core::{Database, Finding, Snapshot};

/// What the user wants of a plan.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Only for findings of these rules; all when empty.
    pub only: Vec<String>,
    /// Change the configuration files of databases, too, instead of writing what to add beside.
    pub configure: bool,
    /// The size of huge page to plan for, `2m` or `1g`, instead of the advised one.
    pub page: Option<String>,
}

/// What remedies look at: a check, and the host as it was then.
pub struct Case<'a> {
    /// The host and its databases.
    pub snapshot: &'a Snapshot,
    /// How many huge pages they need.
    pub sizing: &'a Sizing,
    /// What the user wants.
    pub wish: &'a Wish,
    /// The findings that the remedy answers, with their databases.
    pub findings: Vec<(Option<&'a Database>, &'a Finding)>,
}

impl Case<'_> {
    /// The ids of the databases that are concerned, each once.
    pub fn databases(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.concerned().map(|database| database.id.clone()).collect();
        ids.dedup();
        ids
    }

    /// The databases that are concerned, each once.
    pub fn concerned(&self) -> impl Iterator<Item = &Database> {
        self.snapshot.databases.iter().filter(|database| {
            self.findings.iter().any(|(of, _)| of.is_some_and(|of| of.id == database.id))
        })
    }
}
