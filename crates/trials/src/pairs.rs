//! Two arms: what their pairs show so far.

use crate::Trial;
use untax_core::guards::Guard;
use untax_core::verdict::{self, LEAST_PAIRS, Word, judge};

/// Pairs that must all say the same for an early end: by chance they do once in 256 times for
/// each direction.
const UNANIMOUS: usize = 8;

/// Trials of two arms in one cell as verdicts take them. The arm `applied` is the one with the change;
/// `rate` tells what an outcome achieved.
pub fn judged<T>(
    trials: &[Trial<T>],
    applied: usize,
    rate: impl Fn(&T) -> f64,
) -> Vec<verdict::Trial> {
    let judged = |trial: &Trial<T>| verdict::Trial {
        pair: trial.slot.block,
        applied: trial.slot.arm == applied,
        rate: rate(&trial.outcome),
        spoiled: trial.spoiled().cloned().collect::<Vec<Guard>>(),
        sleeps: trial.sleeps.clone(),
    };
    trials.iter().map(judged).collect()
}

/// Whether every pair says the same, and the verdict is clear. Looking after each pair finds
/// what is not there more often than looking once would: hence the sharper demand.
pub fn is_unanimous(trials: &[verdict::Trial]) -> bool {
    let better: Vec<bool> =
        verdict::pairs(trials).into_iter().map(|(with, without)| with > without).collect();
    better.len() >= UNANIMOUS.max(LEAST_PAIRS as usize)
        && (better.iter().all(|is| *is) || better.iter().all(|is| !is))
        && judge(trials).is_some_and(|verdict| verdict.word != Word::Inconclusive)
}
