//! What a remedy is planned from.

use untax_core::advice::Advice;
use untax_core::plan::Sizing;
use untax_core::{Bytes, Database, Finding, Snapshot, page_size};

/// What the user wants of a plan.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Only for findings of these rules; all when empty.
    pub only: Vec<String>,
    /// Leave out findings of severity info, and those whose gain is too small to show.
    pub significant_only: bool,
    /// Change the configuration files of databases, too, instead of writing what to add beside.
    pub configure: bool,
    /// The size of huge page to plan for, such as `2m`, or `thp` for transparent ones, instead of
    /// the advised one.
    pub page: Option<String>,
    /// What other runtimes, networks and volumes would cost: part of the plan as it is.
    pub alternatives: Vec<Advice>,
}

/// The wish for transparent huge pages instead of a pool.
pub const TRANSPARENT: &str = "thp";

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

impl<'a> Case<'a> {
    /// The ids of the databases that are concerned, each once.
    pub fn databases(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.concerned().map(|database| database.id.clone()).collect();
        ids.dedup();
        ids
    }

    /// The same; those of the whole host where a finding is about it and about no database.
    pub fn databases_or_all(&self) -> Vec<String> {
        let concerned = self.databases();
        if !concerned.is_empty() {
            return concerned;
        }
        self.snapshot.databases.iter().map(|database| database.id.clone()).collect()
    }

    /// The databases that are concerned, each once.
    pub fn concerned(&self) -> impl Iterator<Item = &'a Database> {
        self.snapshot.databases.iter().filter(|database| {
            self.findings.iter().any(|(of, _)| of.is_some_and(|of| of.id == database.id))
        })
    }

    /// Whether a finding of a database asks for a remedy.
    pub fn asks(&self, database: &Database, remedy: &str) -> bool {
        self.findings.iter().any(|(of, finding)| {
            of.is_some_and(|of| of.id == database.id) && finding.remedy.as_deref() == Some(remedy)
        })
    }

    /// The advised size of huge page; `None` where this host has none.
    pub fn page(&self) -> Option<Bytes> {
        page_size::from_token(&self.sizing.node.advice.page)
    }

    /// How many pages of a size hold all that a database maps; `None` where that is not known.
    pub fn pages(&self, database: &Database, page: Bytes) -> Option<u64> {
        let size = self.sizing.databases.iter().find(|size| size.id == database.id)?;
        size.huge_pages.value()?.get(&page_size::token(page)).copied()
    }

    /// How many CPUs a database may use, at least one: those of the machine, or fewer where a group
    /// above it limits them. `None` where they are not known.
    pub fn cpus(&self, database: &Database) -> Option<u32> {
        let all = f64::from(self.snapshot.host.cpu.value()?.logical);
        let limits = database.cgroup.value().and_then(|cgroup| cgroup.cpu.value());
        let lowest = limits.into_iter().flatten().map(|limit| limit.cpus).fold(all, f64::min);
        let allowed =
            database.allowed_cpus.value().map(|list| untax_core::host::cpus(list).count());
        let allowed = allowed.filter(|count| *count > 0).map_or(all, |count| count as f64);
        Some((lowest.min(allowed).ceil() as u32).max(1))
    }

    /// Whether the user wants transparent huge pages and no pool.
    pub fn wants_no_pool(&self) -> bool {
        self.wish.page.as_deref() == Some(TRANSPARENT)
    }
}
