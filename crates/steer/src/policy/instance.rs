//! One database that is steered.

use super::tunables::Tunables;
use serde::{Deserialize, Serialize};
use untax_core::cpus::Cpus;

/// One database that is steered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// The CPUs on which it is at home.
    pub preferred: Cpus,
    /// What was set for it.
    pub tunables: Tunables,
}
