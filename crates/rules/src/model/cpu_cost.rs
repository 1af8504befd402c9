//! Time on a CPU that one part of a cause took.

use untax_core::{Evidence, Interval};

/// The time, how it was measured, and the evidence for it.
pub struct CpuCost {
    /// Seconds on a CPU.
    pub taken_s: Interval,
    /// How they were measured.
    pub method: String,
    /// Whether a model gave them: a count times a cost, without a sample.
    pub modelled: bool,
    /// What the measurement stands on.
    pub evidence: Vec<Evidence>,
    /// What was left out because it ends by itself, in words.
    pub warm_up: Option<String>,
}
