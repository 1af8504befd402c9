//! The time left, learnt from the trials so far.

use std::time::Duration;

/// What work is expected to take, and took.
///
/// Expected lengths may be rough: what is left is corrected by how much longer the same kind of work has
/// taken so far.
#[derive(Debug, Default)]
struct Work {
    left: Duration,
    done: Duration,
    took: Duration,
}

impl Work {
    fn finish(&mut self, expected: Duration, took: Duration) {
        self.left = self.left.saturating_sub(expected);
        self.done += expected;
        self.took += took;
    }

    /// What is left, when part of work at hand is done too: of what was expected and what it took so far.
    fn left(&self, done: Duration, took: Duration) -> Duration {
        let (all, took) = (self.done + done, self.took + took);
        // Before a second was expected there is nothing to learn from.
        let factor = if all < Duration::from_secs(1) { 1.0 } else { took.div_duration_f64(all) };
        self.left.saturating_sub(done).mul_f64(factor.clamp(0.01, 100.0))
    }
}

/// Tells the time left: preparing and trials apart, because one is planned and the other guessed.
#[derive(Debug)]
pub(crate) struct Clock {
    preparing: Work,
    trials: Work,
}

impl Clock {
    /// A clock for work of which this is expected.
    pub(crate) fn new(preparing: Duration, trials: Duration) -> Self {
        let work = |left| Work { left, ..Work::default() };
        Self { preparing: work(preparing), trials: work(trials) }
    }

    /// Preparing is done that was expected to take so long, and took so long.
    pub(crate) fn prepared(&mut self, expected: Duration, took: Duration) {
        self.preparing.finish(expected, took);
    }

    /// A trial is done that was expected to take so long, and took so long.
    pub(crate) fn tried(&mut self, expected: Duration, took: Duration) {
        self.trials.finish(expected, took);
    }

    /// A trial is not made that was expected to take so long.
    pub(crate) fn skipped(&mut self, expected: Duration) {
        self.trials.left = self.trials.left.saturating_sub(expected);
    }

    /// Time left.
    pub(crate) fn left(&self) -> Duration {
        self.left_while_preparing(Duration::ZERO, Duration::ZERO)
    }

    /// Time left while preparing goes on: `done` of what was expected is done, and took `took`.
    pub(crate) fn left_while_preparing(&self, done: Duration, took: Duration) -> Duration {
        self.trials.left(Duration::ZERO, Duration::ZERO) + self.preparing.left(done, took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_shrinks_with_what_is_done() {
        let seconds = Duration::from_secs;
        let mut clock = Clock::new(seconds(10), seconds(20));
        assert_eq!(clock.left(), seconds(30));
        clock.tried(seconds(5), seconds(5));
        assert_eq!(clock.left(), seconds(25));
        clock.skipped(seconds(5));
        assert_eq!(clock.left(), seconds(20));
        // Half of the preparing took no time worth mentioning.
        assert!(clock.left_while_preparing(seconds(5), Duration::ZERO) < seconds(11));
        clock.prepared(seconds(10), seconds(1));
        assert_eq!(clock.left(), seconds(10));
    }

    #[test]
    fn trials_that_take_twice_as_long_double_the_time_left() {
        let seconds = Duration::from_secs;
        let mut clock = Clock::new(Duration::ZERO, seconds(20));
        clock.tried(seconds(5), seconds(10));
        assert_eq!(clock.left(), seconds(30));
    }
}
