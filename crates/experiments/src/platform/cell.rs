//! What every arm is measured in.

use super::placement::{Cpus, Placement};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which values are the good ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Rates.
    Higher,
    /// Times.
    Lower,
}

impl Better {
    /// A value as a speed: the larger, the better.
    pub fn speed(self, value: f64) -> f64 {
        match self {
            Self::Higher => value,
            Self::Lower => value.recip(),
        }
    }
}

/// Some work.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its id, kebab-case.
    pub id: String,
    /// What it does, in one line.
    pub summary: String,
    /// Of its value, such as `requests/s`.
    pub unit: String,
    /// Which values are the good ones.
    pub better: Better,
    /// How long one trial measures.
    pub trial: Duration,
    /// About how long it takes to bring up an arm for it, on top of a trial.
    pub start: Duration,
    /// Where servers and clients run unless `--pin` says otherwise.
    pub placements: Vec<Placement>,
    /// Whether it is measured where nothing else is asked for.
    pub is_usual: bool,
    /// Whether it is measured with `--quick`.
    pub is_quick: bool,
    /// Whether it explains other cells (the cost of a system call) rather than being compared.
    pub explains: bool,
    /// Which databases it stands for: those of an engine, loaded in this way.
    pub stands_for: Option<StandsFor>,
    /// What others published, by arm: times as fast as their baseline.
    pub published: Vec<Published>,
    /// Why it cannot be measured here.
    pub cannot: Option<String>,
}

/// The databases that a workload stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StandsFor {
    /// The engine's id.
    pub engine: String,
    /// Whether each operation has a connection of its own.
    pub connects: bool,
}

/// A ratio that somebody published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Published {
    /// The arm that is like theirs.
    pub arm: String,
    /// Times as fast as their baseline.
    pub factor: f64,
    /// Where it is from.
    pub source: String,
}

impl Workload {
    /// Work that is measured where nothing else is asked for, on one CPU, for a second.
    pub fn new(id: &str, summary: &str, unit: &str, better: Better) -> Self {
        Self {
            id: id.to_owned(),
            summary: summary.to_owned(),
            unit: unit.to_owned(),
            better,
            trial: Duration::from_secs(1),
            start: Duration::from_millis(500),
            placements: vec![Placement::OneCpu],
            is_usual: false,
            is_quick: false,
            explains: false,
            stands_for: None,
            published: Vec::new(),
            cannot: None,
        }
    }

    /// The same, which stands for the databases of an engine that make a connection for each operation or
    /// keep them.
    #[must_use]
    pub fn standing_for(self, engine: &str, connects: bool) -> Self {
        Self { stands_for: Some(StandsFor { engine: engine.to_owned(), connects }), ..self }
    }
}

/// A workload in a placement.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The work.
    pub workload: Workload,
    /// Where.
    pub placement: Placement,
    /// Its CPUs on this machine.
    pub cpus: Cpus,
}

impl Cell {
    /// Its name in messages and saved trials.
    pub fn name(&self) -> String {
        format!("{} @ {}", self.workload.id, self.placement.id())
    }
}
