//! What is said while trials go on.

use super::WITH;
use crate::screen::say;
use std::time::{Duration, Instant};
use untax_core::verdict;
use untax_report::format;
use untax_trials::{Observer, Saved, Trial, is_unanimous};

/// How trials are taken for a verdict.
type Judged<'a> = &'a dyn Fn(&[Trial<f64>]) -> Vec<verdict::Trial>;

/// Says and saves what each trial gave, and ends the trials early when all pairs agree.
pub struct Screen<'a> {
    pairs: u32,
    saved: &'a Saved,
    arms: &'a [&'static str],
    judged: Judged<'a>,
    begun: Instant,
    /// Trials of this run so far; those that it goes on with took no time of it.
    made: u32,
}

impl<'a> Screen<'a> {
    pub fn new(pairs: u32, saved: &'a Saved, arms: &'a [&'static str], judged: Judged<'a>) -> Self {
        Self { pairs, saved, arms, judged, begun: Instant::now(), made: 0 }
    }

    /// How long all that may follow takes, at the pace so far.
    fn left(&self, done: usize) -> Duration {
        let all = self.pairs as usize * self.arms.len();
        let left = u32::try_from(all.saturating_sub(done)).unwrap_or(u32::MAX);
        (self.begun.elapsed() / self.made.max(1)).saturating_mul(left)
    }
}

/// The trial with the plan over the one without, of one pair.
fn ratio(trials: &[Trial<f64>], block: u32) -> Option<f64> {
    let of = |with: bool| {
        let own = |trial: &&Trial<f64>| trial.slot.block == block && trial.counts();
        trials.iter().filter(own).find(|trial| (trial.slot.arm == WITH) == with)
    };
    let (with, without) = (of(true)?.outcome, of(false)?.outcome);
    (without > 0.0).then(|| with / without)
}

/// So long in words: to the minute from ten minutes on.
fn in_words(length: Duration) -> String {
    let seconds = length.as_secs();
    if seconds < 600 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

impl Observer<f64, anyhow::Error> for Screen<'_> {
    fn trial(&mut self, trials: &[Trial<f64>]) -> anyhow::Result<()> {
        let Some(last) = trials.last() else { return Ok(()) };
        self.made += 1;
        let (block, pairs, arm) = (last.slot.block, self.pairs, self.arms[last.slot.arm]);
        let mut line =
            format!("pair {} of at most {pairs}, {arm:16}: {:.1}", block + 1, last.outcome);
        if !last.counts() {
            let spoiled: Vec<_> = last.spoiled().cloned().collect();
            line += &format!(" (does not count: {})", format::guards(&spoiled));
        }
        if let Some(ratio) = ratio(trials, block).filter(|_| self.arms.len() == 2) {
            line += &format!("; this pair {ratio:.2}×");
        }
        line += &format!("; at most {} left", in_words(self.left(trials.len())));
        say(&line);
        Ok(self.saved.save(trials)?)
    }

    fn is_decided(&mut self, trials: &[Trial<f64>]) -> bool {
        is_unanimous(&(self.judged)(trials))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_trials::Slot;

    #[test]
    fn a_pair_has_a_ratio_once_both_trials_count() {
        let trial = |block, arm, outcome| Trial {
            slot: Slot { block, arm, cell: 0, repeat: false },
            outcome,
            took_s: 1.0,
            guards: Vec::new(),
            sleeps: None,
        };
        let made = [trial(0, WITH, 120.0), trial(0, 1 - WITH, 100.0), trial(1, WITH, 120.0)];
        assert!((ratio(&made, 0).unwrap() - 1.2).abs() < 1e-9);
        assert_eq!(ratio(&made, 1), None);
        assert_eq!(in_words(Duration::from_secs(59)), "59 s");
        assert_eq!(in_words(Duration::from_secs(601)), "11 min");
    }
}
