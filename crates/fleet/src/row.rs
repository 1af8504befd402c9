//! Rows of metrics, wherever they come from.

use std::collections::BTreeMap;

/// Labels and a value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

impl Row {
    /// A label; empty where there is none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// What a source says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Where from, for a person.
    pub source: String,
    /// When, seconds since 1970.
    pub now_s: f64,
    /// Over how long the rates are means; `None` where it differs from node to node.
    pub range_s: Option<f64>,
    /// Seconds that each rule took from a database, each second.
    pub taxes: Vec<Row>,
    /// Seconds that each database was active, each second.
    pub active: Vec<Row>,
    /// The seconds of each rule over the whole fleet, each second; `count` of databases in the label.
    pub causes: Vec<Row>,
    /// What was not measured in the last window, a row for each database and rule.
    pub unmeasured: Vec<Row>,
    /// When the last window of each node ended, seconds since 1970.
    pub ended: Vec<Row>,
    /// Facts of nodes, with `machine_id`.
    pub nodes: Vec<Row>,
    /// Nodes that a source names and that did not answer, with the reason.
    pub unreachable: Vec<(String, String)>,
    /// How many databases there are, where the rows are of a part of them.
    pub databases: Option<f64>,
}
