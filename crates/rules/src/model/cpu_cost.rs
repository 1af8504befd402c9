//! Time on a CPU that one part of a cause took.

use untax_core::{Evidence, Interval};

/// The time, how it was measured, and the evidence for it.
pub struct CpuCost {
    /// Seconds on a CPU.
    pub taken_s: Interval,
    /// How they were measured.
    pub method: String,
    /// What the measurement stands on.
    pub evidence: Vec<Evidence>,
    /// What was left out because it ends by itself, in words.
    pub warm_up: Option<String>,
}
