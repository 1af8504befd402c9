//! Neighbours that held locks of the kernel.

use super::causes::Cause;
use crate::Seconds;
use serde::{Deserialize, Serialize};

/// A thread of no database that held what others waited for in the kernel, a journal's handle or a file's lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Holder {
    /// Its thread.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its control group; empty where it has ended since.
    pub cgroup: String,
    /// What it did for the longest of the time that others waited for it.
    pub cause: Cause,
    /// For how long, summed over waits that were traced.
    pub time_s: Seconds,
}
