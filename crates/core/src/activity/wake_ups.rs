//! How often threads were woken on CPUs that slept.

use super::{Activity, Doing};
use crate::Seconds;
use serde::{Deserialize, Serialize};

/// How often threads that were woken got a CPU while they were traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

impl Activity {
    /// How long a thread waited for a CPU that slept, on average.
    pub fn mean_wake_up(&self) -> Option<Seconds> {
        let asleep = self.wake_ups?.asleep;
        let waits = self.slices.iter().map(|slice| slice.sum(|spent| spent.doing == Doing::WakeUp));
        (asleep > 0).then(|| Seconds(waits.sum::<f64>() / asleep as f64))
    }
}
