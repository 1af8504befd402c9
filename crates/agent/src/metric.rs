//! What an entry of the catalogue says of a metric.

/// A metric: its entry says everything that documents and dashboards need.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    /// The name without unit and suffix, such as `untax_tax`.
    pub base: &'static str,
    /// How its values behave.
    pub kind: Kind,
    /// What its values are counted in.
    pub unit: Unit,
    /// What it is about.
    pub of: Of,
    /// Its labels beside the identity.
    pub labels: &'static [&'static str],
    /// One line: what it says.
    pub help: &'static str,
    /// Where it comes from: the name in the JSON of a check, or what is read.
    pub source: &'static str,
}

/// How the values of a metric behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Grows, and begins anew with the agent.
    Counter,
    /// The value of the last window.
    Gauge,
    /// Always 1: its labels are what it says.
    Info,
}

/// What values are counted in; a part of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A share of 0 to 1, or a factor.
    Ratio,
    /// Numbers of things, which the name says.
    Count,
}

/// What a metric is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// One database.
    Database,
    /// The node.
    Node,
    /// The agent itself.
    Agent,
}

/// The labels of a metric of a database, beside `node`, which every series has.
pub const IDENTITY: [&str; 5] = ["namespace", "pod", "container", "engine", "database"];

impl Metric {
    /// The name as Prometheus stores it: with unit and suffix.
    pub fn name(&self) -> String {
        let unit = self.unit.suffix().map(|unit| format!("_{unit}")).unwrap_or_default();
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
            Kind::Info => "_info",
        };
        format!("{}{unit}{suffix}", self.base)
    }
}

impl Unit {
    /// As the name says it.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::Ratio => Some("ratio"),
            Self::Count => None,
        }
    }
}

impl Kind {
    /// As documents say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
        }
    }
}

impl Of {
    /// As documents say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Node => "node",
            Self::Agent => "agent",
        }
    }
}
