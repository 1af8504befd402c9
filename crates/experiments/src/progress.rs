//! How far an experiment is, and when it will be done.

use std::time::{Duration, Instant};

/// How far an experiment is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Trials done.
    pub done: u32,
    /// All trials.
    pub total: u32,
    /// What is being done, for a person.
    pub doing: String,
    /// Time left, as far as it can be told.
    pub left: Duration,
}

/// Whoever wants to know how an experiment goes, and keeps what it has so far.
pub trait Observer<T> {
    /// Something went on; called often.
    fn progress(&mut self, progress: &Progress);
    /// The result so far; called after every trial, to be saved.
    fn partial(&mut self, result: &T);
}

/// An observer that does not care.
pub struct Nobody;

impl<T> Observer<T> for Nobody {
    fn progress(&mut self, _: &Progress) {}
    fn partial(&mut self, _: &T) {}
}

/// Tells the time left from what was expected of the work and how long it really took.
///
/// Trials last as long as they were told to. Everything else is expected from rough rates, and
/// those are corrected by what was seen so far.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    expected: Duration,
    preparing_left: Duration,
    prepared: Duration,
    prepared_expected: Duration,
    trials_left: Duration,
}

impl Clock {
    /// A clock for work of which this is expected.
    pub(crate) fn new(preparing: Duration, trials: Duration) -> Self {
        Self {
            began: Instant::now(),
            expected: Duration::ZERO,
            preparing_left: preparing,
            prepared: Duration::ZERO,
            prepared_expected: Duration::ZERO,
            trials_left: trials,
        }
    }

    /// Preparing of this expected length begins.
    pub(crate) fn prepare(&mut self, expected: Duration) {
        (self.began, self.expected) = (Instant::now(), expected);
    }

    /// It is done.
    pub(crate) fn prepared(&mut self) {
        self.prepared += self.began.elapsed();
        self.prepared_expected += self.expected;
        self.preparing_left = self.preparing_left.saturating_sub(self.expected);
        self.expected = Duration::ZERO;
    }

    /// Trials of this length are done, or will not be.
    pub(crate) fn tried(&mut self, length: Duration) {
        self.trials_left = self.trials_left.saturating_sub(length);
    }

    /// Time left. `share` of the preparing at hand is done.
    pub(crate) fn left(&self, share: f64) -> Duration {
        let share = share.clamp(0.0, 1.0);
        let seen = self.prepared
            + if self.expected.is_zero() { Duration::ZERO } else { self.began.elapsed() };
        let expected = self.prepared_expected + self.expected.mul_f64(share);
        // Before a second was expected there is nothing to learn from.
        let factor =
            if expected < Duration::from_secs(1) { 1.0 } else { seen.div_duration_f64(expected) };
        let preparing = self.preparing_left.saturating_sub(self.expected.mul_f64(share));
        self.trials_left + preparing.mul_f64(factor.clamp(0.01, 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_shrinks_with_what_is_done() {
        let seconds = Duration::from_secs;
        let mut clock = Clock::new(seconds(10), seconds(20));
        assert_eq!(clock.left(0.0), seconds(30));
        clock.tried(seconds(5));
        assert_eq!(clock.left(0.0), seconds(25));
        clock.prepare(seconds(10));
        // Ten seconds were expected and took none worth mentioning.
        assert!(clock.left(0.5) < seconds(21));
        clock.prepared();
        assert_eq!(clock.left(0.0), seconds(15));
    }
}
