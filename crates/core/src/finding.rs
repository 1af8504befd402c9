//! What rules say: findings with evidence, tax and predicted gain, or why they cannot say.

use crate::{Evidence, Gain, Interval, reason};
use serde::{Deserialize, Serialize};

/// How much a finding matters. Ordered from least to most.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; changes no exit code.
    Info,
    /// Costs little, or wastes resources rather than time.
    Low,
    /// Costs noticeably.
    Medium,
    /// Costs much, or the database is about to fail.
    High,
}

/// Whose cause it is.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everything below the database. Runs of older versions, which do not say it, have this.
    #[default]
    Platform,
    /// The database and its application: locks, connections, queries.
    Database,
}

impl Scope {
    /// Both, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Platform, Self::Database];

    /// As JSON and reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Database => "database",
        }
    }
}

/// Share (0..1) of the database's active thread time that a cause took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tax {
    /// The best estimate.
    pub share: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// How it was measured, part by part.
    pub method: String,
    /// Whether a part of it comes from a model (a count times a cost, say): no event and no sample
    /// told how long it took. False in runs of older versions, which do not say it.
    #[serde(default)]
    pub modelled: bool,
}

/// A modelled tax whose bounds are as far apart as this factor is unknown in size.
const FACTOR_OF_UNKNOWN_SIZE: f64 = 10.0;

impl Tax {
    /// A tax of measured time, from a share with bounds; shares are kept within 0..=1.
    pub fn new(share: Interval, method: impl Into<String>) -> Self {
        let Interval { mid, low, high } = share.clamp(0.0, 1.0);
        Self { share: mid, low, high, method: method.into(), modelled: false }
    }

    /// The same, saying whether a part of it is modelled.
    #[must_use]
    pub fn with_model(self, modelled: bool) -> Self {
        Self { modelled, ..self }
    }

    /// Its share with the bounds.
    pub fn interval(&self) -> Interval {
        Interval::new(self.low, self.share, self.high)
    }

    /// Whether the middle says nothing: it is modelled, and the bounds are a factor of ten apart.
    pub fn is_unknown_in_size(&self) -> bool {
        self.modelled && self.high > 0.0 && self.high >= FACTOR_OF_UNKNOWN_SIZE * self.low
    }
}

/// One cause that one database, or the host, suffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// The rule's id, such as `small-pages`.
    pub rule: String,
    /// Whose cause it is: the rule's scope.
    #[serde(default)]
    pub scope: Scope,
    /// How much it matters.
    pub severity: Severity,
    /// One line: what is the case, with the deciding number.
    pub summary: String,
    /// One line: what to change.
    pub fix: String,
    /// What the finding stands on.
    pub evidence: Vec<Evidence>,
    /// What it costs, or `None` when that cannot be measured here (see `unmeasured`).
    pub tax: Option<Tax>,
    /// By what factor throughput should grow without it: hardly, where clients think between requests.
    pub gain: Option<Gain>,
    /// By what factor requests should take less time in the database without it; runs of older versions do not
    /// say it of all.
    #[serde(default)]
    pub latency_gain: Option<Gain>,
    /// The remedy that removes it, when there is one.
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding without evidence, tax, gain or remedy: a rule adds what it has. Its scope is set from
    /// its rule's entry when a check is assembled.
    pub fn new(
        rule: &str,
        severity: Severity,
        summary: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            rule: rule.to_owned(),
            scope: Scope::default(),
            severity,
            summary: summary.into(),
            fix: fix.into(),
            evidence: Vec::new(),
            tax: None,
            gain: None,
            latency_gain: None,
            remedy: None,
        }
    }
}

/// Something a rule could not measure, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Unmeasured {
    /// The rule's id, or [`EVERY_RULE`].
    pub rule: String,
    /// The id of the kind of reason; empty in runs of older versions.
    #[serde(default)]
    pub id: String,
    /// Why, and what would make it measurable.
    pub why: String,
}

impl Unmeasured {
    /// What a rule could not measure. The kind of the reason follows from its words.
    pub fn new(rule: &str, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { rule: rule.to_owned(), id: reason::of(&why).id.to_owned(), why }
    }
}

/// Stands for all rules, where nothing is told of a database that ended during the check.
pub const EVERY_RULE: &str = "all";

/// What a rule says about one database, or about the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The database's id; `None` for the host.
    pub database: Option<String>,
    /// What the rule says.
    pub says: Says,
}

/// A rule's statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    /// The cause is there.
    Found(Finding),
    /// The rule, or its tax, could not be measured.
    Unmeasured(Unmeasured),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modelled_tax_that_spans_a_factor_of_ten_is_unknown_in_size() {
        let is_unknown = |low, high, modelled| {
            let tax = Tax::new(Interval::new(low, high, high), "").with_model(modelled);
            tax.is_unknown_in_size()
        };
        assert!(is_unknown(0.009, 0.87, true) && is_unknown(0.0, 0.3, true));
        assert!(!is_unknown(0.09, 0.63, true), "a factor of seven");
        assert!(!is_unknown(0.009, 0.87, false), "it was measured, though in few slices");
        assert!(!is_unknown(0.0, 0.0, true), "nothing is not unknown");
    }

    #[test]
    fn a_tax_of_an_older_run_says_nothing_of_models_and_scopes() {
        let old: Tax =
            serde_json::from_str(r#"{"share":0.5,"low":0.1,"high":0.9,"method":""}"#).unwrap();
        assert!(!old.modelled);
        let json = serde_json::to_value(Finding::new("x", Severity::Low, "", "")).unwrap();
        assert_eq!(json["scope"], "platform");
    }

    #[test]
    fn a_reason_has_an_id_and_one_of_an_older_run_none() {
        let gap = Unmeasured::new("cpu-throttled", "the check had no window; use --window 10s");
        assert_eq!(gap.id, "no-window");
        let json = serde_json::to_string(&gap).unwrap();
        assert_eq!(serde_json::from_str::<Unmeasured>(&json).unwrap(), gap);
        let old: Unmeasured = serde_json::from_str(r#"{"rule":"vm-steal","why":"no"}"#).unwrap();
        assert_eq!(old.id, "");
    }
}
