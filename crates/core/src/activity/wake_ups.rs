//! How often threads were woken on CPUs that slept.

use serde::{Deserialize, Serialize};

/// How often threads that were woken got a CPU while they were traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WakeUps {
    /// All of them.
    pub all: u64,
    /// Those on CPUs that were idle until then.
    pub asleep: u64,
}

impl WakeUps {
    /// The part (0..1) on CPUs that slept; `None` where no thread was woken.
    pub fn part_asleep(&self) -> Option<f64> {
        (self.all > 0).then(|| (self.asleep as f64 / self.all as f64).min(1.0))
    }
}
