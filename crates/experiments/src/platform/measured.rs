//! What a trial gives.

use serde::{Deserialize, Serialize};

/// What one trial of one arm gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measured {
    /// In the workload's unit.
    pub value: f64,
    /// Operations that were counted; none where there are no such things. CPU time and sleeps of idle CPUs are
    /// given for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<f64>,
    /// What else was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<Extra>,
    /// What was used up, when the value tells of that rather than of the arm: a client at its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturated: Option<String>,
}

/// Something else that a trial measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Extra {
    /// Its id, kebab-case, such as `latency-p99`.
    pub id: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

impl Measured {
    /// A value alone.
    pub fn of(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// The same, with operations counted.
    #[must_use]
    pub fn counting(self, operations: f64) -> Self {
        Self { operations: Some(operations), ..self }
    }

    /// The same, with something more.
    #[must_use]
    pub fn with(mut self, id: &str, value: f64, unit: &str) -> Self {
        self.extras.push(Extra { id: id.to_owned(), value, unit: unit.to_owned() });
        self
    }
}
