//! How surely a verification finds what is there.

use crate::stats;
use crate::verdict::{LEAST_PAIRS, Trial, Word, conclude, pairs, same_arm};

pub use crate::verdict::Power;

/// The effect that power is told for: what is hardly worth a change below it.
pub const FACTOR: f64 = 1.1;

/// Verifications that are simulated: the share is known within some three points.
const SIMULATED: u32 = 200;

/// The seed, so that the same trials always have the same power.
const SEED: u64 = 0x70_0e_5e_ed;

/// Simulates verifications where the plan is worth `factor`, with noise drawn from the trials: from
/// neighbours of the same arm, and from how far pairs are from their middle, which also has what a
/// restart between the arms does. `None` below the pairs that a verdict needs.
pub fn power(trials: &[Trial], factor: f64) -> Option<Power> {
    let rates = pairs(trials);
    if rates.len() < LEAST_PAIRS as usize {
        return None;
    }
    let logs: Vec<f64> = rates.iter().map(|(with, without)| (with / without).ln()).collect();
    let middle = stats::median(&logs)?;
    // A residual is a little too small: the middle was made of it.
    let wider = (logs.len() as f64 / (logs.len() as f64 - 1.0)).sqrt();
    let mut noise: Vec<f64> = logs.iter().map(|log| (log - middle) * wider).collect();
    noise.extend(same_arm(trials).into_iter().map(f64::ln));
    noise.retain(|log| log.is_finite());
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut draw = |count: usize, by: f64| -> Vec<f64> {
        let one = |rng: &mut fastrand::Rng| {
            let log = noise[rng.usize(..noise.len())];
            by * if rng.bool() { log } else { -log }.exp()
        };
        (0..count).map(|_| one(&mut rng)).collect()
    };
    let without = vec![1.0; rates.len()];
    let found = (0..SIMULATED).filter(|_| {
        let (with, same) = (draw(rates.len(), factor), draw(rates.len() / 2, 1.0));
        conclude(&with, &without, &same).is_some_and(|verdict| verdict.word == Word::Proven)
    });
    let found = found.count() as f64 / f64::from(SIMULATED);
    Some(Power { factor, found, pairs: rates.len() as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trials with a noise of so many percent each and no effect, in blocks of AB, BA.
    fn trials(pairs: u32, noise: f64) -> Vec<Trial> {
        let mut rng = fastrand::Rng::with_seed(5);
        let arms = |pair: u32| if pair.is_multiple_of(2) { [false, true] } else { [true, false] };
        let both = (0..pairs).flat_map(|pair| arms(pair).map(|applied| (pair, applied)));
        both.map(|(pair, applied)| {
            let normal = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
            Trial::new(pair, applied, 1000.0 * (normal * noise).exp())
        })
        .collect()
    }

    #[test]
    fn little_noise_and_many_pairs_find_a_tenth_and_much_noise_does_not() {
        let found = |pairs, noise| power(&trials(pairs, noise), FACTOR).unwrap().found;
        assert!(found(15, 0.02) > 0.95, "{}", found(15, 0.02));
        assert!(found(15, 0.3) < 0.3, "{}", found(15, 0.3));
        assert!(found(30, 0.08) > found(6, 0.08));
    }

    #[test]
    fn no_effect_is_found_in_hardly_any() {
        for noise in [0.02, 0.1] {
            let found = power(&trials(15, noise), 1.0).unwrap().found;
            assert!(found <= 0.05, "{noise}: {found}");
        }
    }

    #[test]
    fn a_few_pairs_have_no_power_that_could_be_told() {
        assert_eq!(power(&trials(LEAST_PAIRS - 1, 0.02), FACTOR), None);
    }
}
