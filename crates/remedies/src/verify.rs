//! Does a plan help? Trials with and without it, by turns, until it is decided.

use std::time::{Duration, Instant};
use untax_core::verdict::{LEAST_PAIRS, Trial, Word, judge};

/// What is compared: the host with and without a plan, under a workload.
pub trait Arms {
    /// Why a trial failed.
    type Error;

    /// Brings the host into one of the two states, ready to be measured.
    fn set(&mut self, applied: bool) -> Result<(), Self::Error>;

    /// Runs the workload once: what it achieved, more being better.
    fn rate(&mut self) -> Result<f64, Self::Error>;
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// No more pairs than these.
    pub pairs: u32,
    /// No new pair after this time.
    pub time: Duration,
}

/// Pairs that must all say the same for an early end: by chance they do once in 256 times for
/// each direction.
const UNANIMOUS: usize = 8;

/// Makes pairs of trials until the verdict is clear or the budget spent. Two pairs make a block,
/// ABBA or BAAB by chance: neighbours of the same arm tell the noise, and drift cancels out.
pub fn verify<A: Arms>(
    arms: &mut A,
    budget: Budget,
    seed: u64,
    mut tell: impl FnMut(&[Trial]),
) -> Result<Vec<Trial>, A::Error> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let began = Instant::now();
    let mut trials: Vec<Trial> = Vec::new();
    let mut first = false;
    for pair in 0..budget.pairs {
        if began.elapsed() >= budget.time || decided(&trials) {
            break;
        }
        first = if pair % 2 == 0 { rng.bool() } else { !first };
        for applied in [first, !first] {
            if trials.last().map(|last| last.applied) != Some(applied) {
                arms.set(applied)?;
            }
            let rate = arms.rate()?;
            trials.push(Trial { pair, applied, rate });
            tell(&trials);
        }
    }
    Ok(trials)
}

/// Whether every pair says the same, and the verdict is clear. Looking after each block finds
/// what is not there more often than looking once would: hence the sharper demand.
fn decided(trials: &[Trial]) -> bool {
    let rate = |pair: &[Trial], applied| pair.iter().find(|t| t.applied == applied).map(|t| t.rate);
    let better = trials.chunks(2).filter_map(|pair| Some(rate(pair, true)? > rate(pair, false)?));
    let better: Vec<bool> = better.collect();
    better.len() >= UNANIMOUS.max(LEAST_PAIRS as usize)
        && (better.iter().all(|is| *is) || better.iter().all(|is| !is))
        && judge(trials).is_some_and(|verdict| verdict.word != Word::Inconclusive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A host where a plan has some effect, and every trial some noise.
    struct Noisy {
        rng: fastrand::Rng,
        applied: bool,
        effect: f64,
        noise: f64,
    }

    impl Arms for Noisy {
        type Error = Infallible;

        fn set(&mut self, applied: bool) -> Result<(), Infallible> {
            self.applied = applied;
            Ok(())
        }

        fn rate(&mut self) -> Result<f64, Infallible> {
            let normal = (0..12).map(|_| self.rng.f64()).sum::<f64>() - 6.0;
            let effect = if self.applied { self.effect } else { 1.0 };
            Ok(1000.0 * effect * (normal * self.noise).exp())
        }
    }

    /// How many of 200 verifications ended with each word, and pairs they took on average.
    fn words(effect: f64, noise: f64, pairs: u32) -> ([usize; 3], f64) {
        let (mut counts, mut taken) = ([0; 3], 0);
        for seed in 0..200 {
            let rng = fastrand::Rng::with_seed(seed);
            let mut arms = Noisy { rng, applied: false, effect, noise };
            let budget = Budget { pairs, time: Duration::MAX };
            let Ok(trials) = verify(&mut arms, budget, seed, |_| {});
            counts[judge(&trials).unwrap().word as usize] += 1;
            taken += trials.len() / 2;
        }
        (counts, taken as f64 / 200.0)
    }

    #[test]
    fn nothing_is_found_where_nothing_is_though_it_is_looked_after_every_pair() {
        for (noise, pairs) in [(0.02, 10), (0.1, 16), (0.1, 30)] {
            let ([proven, disproven, inconclusive], _) = words(1.0, noise, pairs);
            assert!(inconclusive >= 190, "{noise} {pairs}: {proven} {disproven} {inconclusive}");
        }
    }

    #[test]
    fn a_clear_effect_ends_it_early_and_a_harm_is_disproven() {
        let ([proven, disproven, _], pairs) = words(1.5, 0.05, 30);
        assert!(proven == 200 && disproven == 0 && pairs < 12.0, "{proven} {pairs}");
        let ([proven, disproven, _], _) = words(1.0 / 1.1, 0.04, 16);
        assert!(proven == 0 && disproven >= 180, "{proven} {disproven}");
    }

    #[test]
    fn neighbours_of_the_same_arm_are_in_every_block() {
        let mut arms =
            Noisy { rng: fastrand::Rng::with_seed(1), applied: false, effect: 1.0, noise: 0.1 };
        let budget = Budget { pairs: 6, time: Duration::MAX };
        let Ok(trials) = verify(&mut arms, budget, 9, |_| {});
        for block in trials.chunks(4) {
            let order: Vec<bool> = block.iter().map(|trial| trial.applied).collect();
            assert!(order[1] == order[2] && order[0] == order[3] && order[0] != order[1]);
        }
    }
}
