//! The result of `untax timeline`: why throughput changed.

mod comparison;
mod parts;

pub use comparison::{Account, AtOnce, Comparison, PartChange};
pub use parts::{CLIENT, PARTS, part_in_words};

use crate::Reading;
use crate::storage::Storage;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "untax.timeline/1";

/// How throughput of databases went, and why it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Timeline {
    /// `untax.timeline/1`.
    pub schema: String,
    /// Where the windows come from: files, or the address of a Prometheus.
    pub source: String,
    /// When the first window began.
    pub from: Timestamp,
    /// When the last window ended.
    pub to: Timestamp,
    /// How many windows there are.
    pub windows: u64,
    /// The length of most of them.
    pub window_s: f64,
    /// What is to be known of the windows as a whole: gaps, a clock that was set, a torn end.
    pub notes: Vec<Note>,
    /// The databases, in the order of what their throughput changed by most.
    pub databases: Vec<Database>,
}

/// Something to be known of the windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    /// Which kind: `gap`, `clock-step`, `reboot`, `torn-end`, `damaged`, `restarted`, `version`, `role`, `placement`.
    pub id: String,
    /// When; `None` where that is not known.
    pub at: Option<Timestamp>,
    /// In words.
    pub text: String,
}

/// One database over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Database {
    /// Its stable name.
    pub name: String,
    /// Its engine.
    pub engine: String,
    /// Why nothing can be said of its throughput; `None` where it can.
    pub untold: Option<String>,
    /// Its changes, in the order of time.
    pub changes: Vec<Change>,
    /// What is to be known of this database: restarts, upgrades.
    pub notes: Vec<Note>,
    /// What is drawn.
    pub series: Series,
    /// What its storage saw: each kind of request on each disk.
    pub storage: Vec<Storage>,
    /// The same in a sentence; empty where no request was seen.
    pub storage_in_words: String,
}

/// How throughput changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// From one window to the next.
    Step,
    /// Over several windows.
    Ramp,
    /// While nothing was recorded.
    Gap,
}

/// A change of throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// How.
    pub kind: Kind,
    /// When it began: the start of the first window that shows it.
    pub from: Timestamp,
    /// When it had ended; the same as `from` for a step.
    pub to: Timestamp,
    /// Its place among the changes of this database, the largest first, from 1 on.
    pub rank: u32,
    /// Requests a second before.
    pub before_per_s: f64,
    /// And after.
    pub after_per_s: f64,
    /// The seconds of a request, part by part, before and after: they add up to the change.
    pub seconds: Reading<Comparison>,
    /// The causes for which there is evidence, that of the largest part first; none: unexplained.
    pub causes: Vec<Cause>,
    /// Requests a second of the change that no cause accounts for; `None` where time was not measured, as the next.
    pub unexplained_per_s: Option<f64>,
    /// What parts took back that no cause is charged with: threads that wait for one thing less wait longer for the
    /// next. Causes, what is unexplained and this add up to the change.
    pub offset_per_s: Option<f64>,
    /// What else changed about then, without a sign that it mattered.
    pub also: Vec<FactChange>,
}

impl Change {
    /// By how many requests a second throughput changed.
    pub fn gained_per_s(&self) -> f64 {
        self.after_per_s - self.before_per_s
    }
}

/// A cause of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cause {
    /// Its id, of a listed set.
    pub id: String,
    /// What happened, in a sentence.
    pub text: String,
    /// What it brought or took, requests a second: that of the parts it acts on; `None` where time was not
    /// measured.
    pub gained_per_s: Option<f64>,
    /// The parts of a request's time that it is charged with.
    pub parts: Vec<String>,
    /// The facts that changed.
    pub facts: Vec<FactChange>,
}

/// A fact that changed, or a measure that did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FactChange {
    /// Its id.
    pub id: String,
    /// Before; `None` where it was not known, or not there.
    pub before: Option<String>,
    /// After.
    pub after: Option<String>,
    /// When the window ended that shows it first; `None` of a measure.
    pub at: Option<Timestamp>,
}

/// What is drawn of one database: means over as many windows as there are for each point.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Series {
    /// The middle of each point, seconds since 1970.
    pub at_s: Vec<f64>,
    /// Requests a second; `None` where not known, as in all below.
    pub per_s: Vec<Option<f64>>,
    /// The seconds of a request, part by part.
    pub parts: Vec<Line>,
    /// Bytes a second of each kind of request to disks, named `DEVICE ROLE DIRECTION`.
    pub disk_bytes_per_s: Vec<Line>,
    /// Their mean time from issue to completion.
    pub disk_latency_s: Vec<Line>,
}

/// One line of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// What it is of.
    pub id: String,
    /// Its values.
    pub values: Vec<Option<f64>>,
}
