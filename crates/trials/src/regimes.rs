//! Trials of one cell in which CPUs slept, and others in which they did not: these are no pairs.
//!
//! Where CPUs halt as soon as they are idle, client and server may be put on two CPUs that wake each other, or
//! on one that is never idle. Throughput differs by a factor of five then, and tells of nothing that is
//! compared. It is judged by how often CPUs slept, and never by what a trial gave.

use crate::Trial;
use std::collections::BTreeSet;
use untax_core::Reading;
use untax_core::guards::{Guard, GuardId};
use untax_core::sleeps::{APART, Regimes, Sleeps};

/// Sleeps for each context switch of a trial, where that is known.
fn per_switch<T>(trial: &Trial<T>) -> Option<f64> {
    trial
        .sleeps
        .as_ref()
        .map(|Sleeps { per_switch, .. }| per_switch)
        .and_then(Reading::value)
        .copied()
}

/// The arms and cells of which trials ran in two regimes: arm, cell, and how they part.
pub fn regimes<T>(trials: &[Trial<T>]) -> Vec<(usize, usize, Regimes)> {
    let places: BTreeSet<(usize, usize)> =
        trials.iter().map(|trial| (trial.slot.arm, trial.slot.cell)).collect();
    let of = |(arm, cell): (usize, usize)| {
        let own = trials.iter().filter(|trial| (trial.slot.arm, trial.slot.cell) == (arm, cell));
        let shares: Vec<f64> = own.filter(|trial| trial.counts()).filter_map(per_switch).collect();
        Some((arm, cell, Regimes::of(&shares)?))
    };
    places.into_iter().filter_map(of).collect()
}

/// The same trials, in which those count for nothing that would be paired with one of another regime. Arms
/// that sleep differently throughout are left alone: that is what they are.
pub fn without_mixed_pairs<T: Clone>(trials: &[Trial<T>]) -> Vec<Trial<T>> {
    let mut marked = trials.to_vec();
    let cells: BTreeSet<usize> = regimes(trials).into_iter().map(|(_, cell, _)| cell).collect();
    for cell in cells {
        let blocks: BTreeSet<u32> = trials.iter().map(|trial| trial.slot.block).collect();
        for block in blocks {
            let is_here = |trial: &Trial<T>| {
                trial.slot.cell == cell && trial.slot.block == block && trial.counts()
            };
            let here: Vec<f64> =
                marked.iter().filter(|trial| is_here(trial)).filter_map(per_switch).collect();
            let Some(both) = Regimes::of(&here) else { continue };
            let value = Reading::Present(both.apart);
            let guard = Guard { id: GuardId::SleepRegime, subject: None, value, threshold: APART };
            for trial in marked.iter_mut().filter(|trial| is_here(trial)) {
                trial.guards.push(guard.clone());
            }
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;

    fn trial(block: u32, arm: usize, per_switch: Option<f64>) -> Trial<f64> {
        let slot = Slot { block, arm, cell: 0, repeat: false };
        let sleeps = per_switch.map(|share| Sleeps {
            per_switch: Reading::Present(share),
            knob: "haltpoll, guest_halt_poll_ns 0".to_owned(),
        });
        Trial { slot, outcome: 1.0, took_s: 1.0, guards: Vec::new(), sleeps }
    }

    fn counting(trials: &[Trial<f64>]) -> Vec<(u32, usize)> {
        let counting = trials.iter().filter(|trial| trial.counts());
        counting.map(|trial| (trial.slot.block, trial.slot.arm)).collect()
    }

    #[test]
    fn pairs_of_two_regimes_count_for_nothing() {
        let made = [
            trial(0, 0, Some(0.40)),
            trial(0, 1, Some(0.42)),
            trial(1, 1, Some(0.41)),
            trial(1, 0, Some(0.02)),
            trial(2, 0, Some(0.01)),
            trial(2, 1, Some(0.03)),
        ];
        let marked = without_mixed_pairs(&made);
        assert_eq!(counting(&marked), [(0, 0), (0, 1), (2, 0), (2, 1)]);
        let guard = marked[2].spoiled().next().unwrap();
        assert_eq!(guard.id, GuardId::SleepRegime);
        assert_eq!(regimes(&made).len(), 2, "both arms ran in both");
    }

    #[test]
    fn an_arm_that_keeps_cpus_awake_is_paired_with_one_that_does_not() {
        let made = [
            trial(0, 0, Some(0.40)),
            trial(0, 1, Some(0.01)),
            trial(1, 1, Some(0.02)),
            trial(1, 0, Some(0.42)),
        ];
        assert_eq!(without_mixed_pairs(&made), made);
        assert!(regimes(&made).is_empty());
    }

    #[test]
    fn what_is_not_known_parts_nothing() {
        let made = [trial(0, 0, None), trial(0, 1, Some(0.4)), trial(1, 0, None)];
        assert_eq!(without_mixed_pairs(&made), made);
    }
}
