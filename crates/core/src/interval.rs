//! A number together with how sure we are of it.

use serde::{Deserialize, Serialize};

/// An estimate with the bounds between which the true value is thought to lie.
///
/// The bounds are a 95 % interval where a sample stands behind them, and the stated assumption's
/// extremes otherwise; whoever makes one says which in its `method`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interval {
    /// The best single value.
    pub mid: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// An interval, with the bounds put in order around the middle.
    pub fn new(low: f64, mid: f64, high: f64) -> Self {
        Self { mid, low: low.min(mid), high: high.max(mid) }
    }

    /// A value known exactly.
    pub fn exact(value: f64) -> Self {
        Self::new(value, value, value)
    }

    /// Applies a rising function to all three numbers.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self::new(f(self.low), f(self.mid), f(self.high))
    }

    /// Multiplies by a non-negative number.
    #[must_use]
    pub fn scale(self, by: f64) -> Self {
        self.map(|v| v * by)
    }

    /// Adds the bounds as well as the middles: the widest the sum can be.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.low + other.low, self.mid + other.mid, self.high + other.high)
    }

    /// Subtracts the bounds as well as the middles: the widest the difference can be.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self::new(self.low - other.high, self.mid - other.mid, self.high - other.low)
    }

    /// Multiplies the bounds as well as the middles; both must be non-negative.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self::new(self.low * other.low, self.mid * other.mid, self.high * other.high)
    }

    /// Keeps all three numbers within `floor..=ceiling`.
    #[must_use]
    pub fn clamp(self, floor: f64, ceiling: f64) -> Self {
        self.map(|v| v.clamp(floor, ceiling))
    }
}
