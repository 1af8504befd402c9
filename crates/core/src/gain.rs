//! Factors by which throughput or latency gets better: predicted ones stay below what the laws of queues allow.

use crate::Interval;
use serde::{Deserialize, Serialize};

/// A factor with its bounds: 1.25 means a quarter more throughput, or requests that take a fifth less time.
///
/// It is made by [`Gain::predicted`], below a [`Ceiling`], or by [`Gain::measured`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Gain {
    /// The best estimate.
    pub factor: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Gain {
    /// No change.
    pub const NONE: Self = Self { factor: 1.0, low: 1.0, high: 1.0 };

    /// What a model predicts of removing a cause, as far as the laws allow it. No predicted factor is below one:
    /// nobody is told to remove what helps.
    pub fn predicted(factor: Interval, most: Ceiling) -> Self {
        let within = |factor: f64| if factor > 1.0 { factor.min(most.factor()) } else { 1.0 };
        let Interval { low, mid, high } = factor.map(within);
        Self { factor: mid, low, high }
    }

    /// What trials measured.
    pub fn measured(factor: Interval) -> Self {
        let Interval { low, mid, high } = factor;
        Self { factor: mid, low, high }
    }

    /// Whether a measured factor lies within the bounds.
    pub fn contains(&self, factor: f64) -> bool {
        (self.low..=self.high).contains(&factor)
    }
}

/// The largest share of time that counts as saved. What is left is known to a percent at best, so no
/// factor above a hundred is predicted.
const MOST_SAVED: f64 = 0.99;

/// The largest factor that a law of queues allows. Each constructor is one law; several laws hold together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling(f64);

impl Ceiling {
    /// The law of a closed loop without think time: who saves this share (0..1) of each request makes
    /// 1 / (1 - share) times as many.
    pub fn of_share(share: f64) -> Self {
        let saved = if share > 0.0 { share.min(MOST_SAVED) } else { 0.0 };
        Self(1.0 / (1.0 - saved))
    }

    /// The law of a closed loop: its clients' requests take `response_s` and they think for `think_s`, summed over
    /// all of them; `saved_s` of both ends.
    pub fn of_loop(response_s: f64, think_s: f64, saved_s: f64) -> Self {
        Self::of_share(saved_s.min(response_s + think_s) / (response_s + think_s))
    }

    /// The law of utilisation: all that is done takes `demand_s` of servers which have `capacity_s`.
    pub fn of_capacity(capacity_s: f64, demand_s: f64) -> Self {
        let factor = capacity_s / demand_s;
        Self(if demand_s > 0.0 && factor.is_finite() { factor.max(1.0) } else { f64::INFINITY })
            .and(Self::of_share(1.0))
    }

    /// Both laws.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The factor: one or more, and a hundred at most.
    pub fn factor(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_law_gives_its_factor() {
        let about = |ceiling: Ceiling, factor: f64| (ceiling.factor() - factor).abs() < 1e-9;
        assert!(about(Ceiling::of_share(0.75), 4.0));
        assert!(about(Ceiling::of_loop(1.0, 19.0, 1.0), 20.0 / 19.0), "clients that think");
        assert!(about(Ceiling::of_capacity(2.0, 1.6), 1.25));
        assert!(about(Ceiling::of_capacity(2.0, 3.0), 1.0), "it is full");
        assert!(about(Ceiling::of_share(0.75).and(Ceiling::of_capacity(2.0, 1.6)), 1.25));
        let unknown = [Ceiling::of_share(f64::NAN), Ceiling::of_loop(0.0, 0.0, 1.0)];
        assert!(unknown.into_iter().all(|ceiling| about(ceiling, 1.0)), "nothing is promised");
        assert!(
            about(Ceiling::of_share(1.0), 100.0) && about(Ceiling::of_capacity(1.0, 0.0), 100.0)
        );
    }

    fn any_number() -> impl Strategy<Value = f64> {
        prop_oneof![-10.0..1e6_f64, Just(f64::NAN), Just(f64::INFINITY), Just(0.0)]
    }

    proptest! {
        #[test]
        fn no_prediction_passes_what_the_laws_allow(
            low in any_number(),
            mid in any_number(),
            high in any_number(),
            times in (any_number(), any_number(), any_number(), any_number()),
        ) {
            let (response_s, think_s, saved_s, capacity_s) = times;
            let most = Ceiling::of_loop(response_s, think_s, saved_s)
                .and(Ceiling::of_capacity(capacity_s, response_s));
            let gain = Gain::predicted(Interval { mid, low, high }, most);
            prop_assert!((1.0..=100.0 + 1e-9).contains(&most.factor()));
            prop_assert!(1.0 <= gain.low && gain.low <= gain.factor && gain.factor <= gain.high);
            prop_assert!(gain.high <= most.factor());
        }
    }
}
