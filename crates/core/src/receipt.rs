//! A receipt: what was done to a host, with every prior value.

use crate::plan::{Step, Target};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The schema's name and version.
pub const SCHEMA: &str = "untax.receipt/1";

/// The first record of a receipt: enough to undo without the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Header {
    /// `untax.receipt/1`.
    pub schema: String,
    /// The receipt's id.
    pub receipt: String,
    /// The plan's id.
    pub plan: String,
    /// When it was begun.
    pub begun_at: Timestamp,
    /// Whether it was to be undone by the one that did it: a verification, a bench.
    #[serde(default)]
    pub temporary: bool,
    /// The steps, in the order in which they are done.
    pub steps: Vec<Step>,
}

/// Any other record. Each is on disk before what follows it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// A step is about to be done.
    Doing {
        /// Its id.
        step: String,
        /// The value before; `None` when it was not there.
        prior: Option<String>,
        /// Directories that it makes.
        folders: Vec<String>,
        /// Of lines that it adds to a file, how many the file holds already.
        #[serde(default)]
        alike: usize,
    },
    /// A step was done and checked.
    Done {
        /// Its id.
        step: String,
    },
    /// A target is about to be set, to one value after another, until it is put back. It is no
    /// step's: a bench finds out as it goes what it must change.
    Holding {
        /// The target.
        target: Target,
        /// The value before; `None` when it was not there.
        prior: Option<String>,
        /// Of a pool of huge pages: how many pages it had beyond those configured.
        #[serde(default)]
        surplus: u64,
        /// The kernel's id of the boot for which the value holds.
        boot: String,
    },
    /// A step was undone and checked.
    Undone {
        /// Its id.
        step: String,
    },
    /// A command that a step needs changed a limit that no step is about.
    Disturbed(Disturbance),
    /// All steps were done.
    Applied,
    /// All that was done is undone.
    Reverted,
}

/// A limit of a control group that a command changed though it had no business to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Disturbance {
    /// The command, such as `systemctl daemon-reload`.
    pub command: String,
    /// The file of the limit.
    pub file: String,
    /// Its value before.
    pub was: String,
    /// Its value after.
    pub became: String,
    /// Why it could not be put back; none where it was.
    pub left: Option<String>,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, file, was, became, left } = self;
        write!(f, "{command} changed {file} from \"{was}\" to \"{became}\": ")?;
        match left {
            None => write!(f, "put back"),
            Some(why) => write!(f, "not put back ({why}); write the old value by hand"),
        }
    }
}

/// How far a receipt got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// All steps were done.
    Applied,
    /// Something ended the executor half way, or a verification before it undid its plan.
    Interrupted,
    /// Everything is as before.
    Reverted,
}
