//! One window as it is recorded: numbers and facts by name.

use jiff::Timestamp;
use std::collections::BTreeMap;

/// One window of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// When the window ended.
    pub at: Timestamp,
    /// The same by the clock that nobody sets, seconds since boot.
    pub up_s: f64,
    /// How long the window was.
    pub window_s: f64,
    /// What is known of the host.
    pub host: Values,
    /// What is known of each database, by its stable name.
    pub databases: BTreeMap<String, Values>,
}

/// What is known of one thing in one window. What is not known has no entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values {
    /// Numbers, by names that end with their unit.
    pub numbers: BTreeMap<String, f64>,
    /// Facts, as people read them.
    pub facts: BTreeMap<String, String>,
}

impl Values {
    /// Adds a number, unless it is none.
    pub fn number(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.numbers.insert(name.into(), value);
        }
    }

    /// Adds a number, where it is known.
    pub fn known(&mut self, name: impl Into<String>, value: Option<f64>) {
        if let Some(value) = value {
            self.number(name, value);
        }
    }

    /// Adds to a number.
    pub fn more(&mut self, name: String, value: f64) {
        if value.is_finite() {
            *self.numbers.entry(name).or_insert(0.0) += value;
        }
    }

    /// Adds a fact, where it is known.
    pub fn fact(&mut self, name: impl Into<String>, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.facts.insert(name.into(), value.into());
        }
    }
}
