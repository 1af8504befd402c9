//! Repeating something for a time.

use crate::platform::Measured;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::{Duration, Instant};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Done {
    /// Calls or bytes.
    pub(super) units: f64,
    pub(super) seconds: f64,
    /// Other things that were measured after it, by id, nanoseconds each.
    #[serde(default)]
    pub(super) beside_ns: Vec<(String, f64)>,
}

impl Done {
    pub(super) fn of(units: f64, took: Duration) -> Self {
        Self { units, seconds: took.as_secs_f64(), beside_ns: Vec::new() }
    }

    /// As a trial gives it: nanoseconds of each unit, or units a second.
    pub(super) fn measured(&self, in_ns: bool) -> Measured {
        let value = if in_ns { self.ns_each() } else { self.units / self.seconds };
        let beside = self.beside_ns.iter();
        beside.fold(Measured::of(value), |measured, (id, ns)| measured.with(id, *ns, "ns"))
    }

    /// Nanoseconds of each unit.
    pub(super) fn ns_each(&self) -> f64 {
        self.seconds / self.units * 1e9
    }
}

/// Repeats a round of so many units for a time, after one that does not count.
pub(super) fn repeated(
    time: Duration,
    units: f64,
    mut round: impl FnMut() -> io::Result<()>,
) -> io::Result<Done> {
    round()?;
    let (begun, mut rounds) = (Instant::now(), 0.0);
    loop {
        round()?;
        rounds += 1.0;
        let took = begun.elapsed();
        if took >= time {
            return Ok(Done::of(rounds * units, took));
        }
    }
}
