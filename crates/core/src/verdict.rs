//! What an A/B verification showed.

use crate::Gain;
use crate::cpus::Cpus;
use crate::guards::Guard;
use crate::sleeps::Sleeps;
use crate::{Interval, stats};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema's name and version.
pub const SCHEMA: &str = "untax.verify/1";

/// A verification: every trial, and what may be concluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verification {
    /// `untax.verify/1`.
    pub schema: String,
    /// The run's id.
    pub run: String,
    /// The plan's id.
    pub plan: String,
    /// When it ended.
    pub taken_at: Timestamp,
    /// What was tried, and on what; older results do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// What was measured, such as `transactions per second`.
    pub measure: String,
    /// Every trial, in the order in which they were made.
    pub trials: Vec<Trial>,
    /// What the check predicted; `None` when it predicted nothing.
    pub predicted: Option<Gain>,
    /// What is concluded.
    pub verdict: Verdict,
    /// How surely so many trials find what is there, at the noise that they have; `None` when
    /// there are too few to tell.
    #[serde(default)]
    pub power: Option<Power>,
    /// The receipt of the plan when it is applied afterwards, because it was before.
    #[serde(default)]
    pub receipt: Option<String>,
    /// What the order of the trials was drawn from; older results do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Where `untax steer` was tried and no step of a plan: the other arm, and the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Box<Affinity>>,
}

/// What was tried, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct About {
    /// The name of the host.
    pub host: String,
    /// The ids of the databases that the plan is for.
    pub databases: Vec<String>,
    /// What each step of the plan changes.
    pub steps: Vec<String>,
    /// The load of each trial: a command without its secrets, or the traffic that was there.
    pub load: String,
}

/// What soft affinity was compared with, beside no affinity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Affinity {
    /// The CPUs that each database prefers, by its name.
    pub preferred: BTreeMap<String, Cpus>,
    /// Trials in hard partitions: every database has its preferred CPUs alone.
    pub hard_trials: Vec<Trial>,
    /// Hard partitions over no affinity; `None` before the first pair is whole.
    pub hard: Option<Verdict>,
    /// Soft affinity over hard partitions.
    pub soft_over_hard: Option<Verdict>,
}

impl Affinity {
    /// What trials of no affinity, in hard partitions and with soft affinity show together. In `trials` those
    /// with soft affinity are applied; in `hard_trials` all are.
    pub fn of(
        preferred: BTreeMap<String, Cpus>,
        trials: &[Trial],
        hard_trials: Vec<Trial>,
    ) -> Self {
        let only = |applied: bool| trials.iter().filter(move |t| t.applied == applied).cloned();
        let as_base = |trial: &Trial| Trial { applied: false, ..trial.clone() };
        let over_none: Vec<Trial> = only(false).chain(hard_trials.iter().cloned()).collect();
        let soft: Vec<Trial> = only(true).chain(hard_trials.iter().map(as_base)).collect();
        let (hard, soft_over_hard) = (judge(&over_none), judge(&soft));
        Self { preferred, hard_trials, hard, soft_over_hard }
    }
}

/// One run of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// Which pair of blocks it belongs to, from 0.
    pub pair: u32,
    /// Whether the plan was applied.
    pub applied: bool,
    /// What the workload achieved: more is better.
    pub rate: f64,
    /// The guards that were exceeded. Such a trial is shown, and no verdict uses it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<Guard>,
    /// How idle CPUs slept beside it; older results do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleeps: Option<Sleeps>,
}

impl Trial {
    /// A trial beside which nothing went wrong.
    pub fn new(pair: u32, applied: bool, rate: f64) -> Self {
        Self { pair, applied, rate, spoiled: Vec::new(), sleeps: None }
    }

    /// Whether a verdict may use it.
    pub fn counts(&self) -> bool {
        self.spoiled.is_empty()
    }
}

/// What pairs of trials without and with a plan show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// In a word.
    pub word: Word,
    /// The median of the paired ratios, applied over not applied, with its 95 % interval.
    pub measured: Interval,
    /// How far such a median strays from 1 by chance, as a share: from neighbouring trials of the
    /// same arm.
    pub floor: f64,
    /// Pairs that it stands on.
    pub pairs: u32,
}

/// A verdict in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// It is faster: the whole interval is, by more than chance does.
    Proven,
    /// It is slower, in the same sense.
    Disproven,
    /// Neither can be said.
    Inconclusive,
}

/// How often an effect of one size would be found by as many pairs, at the noise that trials had.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Power {
    /// The true factor of throughput that is supposed.
    pub factor: f64,
    /// The share of verifications that would say `proven`.
    pub found: f64,
    /// Pairs of each of them.
    pub pairs: u32,
}

/// Pairs below which nothing is decided: with six pairs or more a median's interval that excludes
/// 1 has all pairs but one on its side.
pub const LEAST_PAIRS: u32 = 6;

/// What the trials so far show, without those that are spoiled; `None` before the first pair is whole.
pub fn judge(trials: &[Trial]) -> Option<Verdict> {
    let (with, without): (Vec<f64>, Vec<f64>) = pairs(trials).into_iter().unzip();
    conclude(&with, &without, &same_arm(trials))
}

/// The rates of each whole pair that is not spoiled: with the plan, and without.
pub fn pairs(trials: &[Trial]) -> Vec<(f64, f64)> {
    let rate = |pair: u32, applied: bool| {
        let is_it = |trial: &&Trial| trial.pair == pair && trial.applied == applied;
        trials.iter().filter(|trial| trial.counts()).find(is_it).map(|trial| trial.rate)
    };
    let last = trials.iter().map(|trial| trial.pair).max();
    let all = last.into_iter().flat_map(|last| 0..=last);
    all.filter_map(|pair| rate(pair, true).zip(rate(pair, false))).collect()
}

/// What pairs of rates show; `noise` are ratios of the same arm.
pub fn conclude(with: &[f64], without: &[f64], noise: &[f64]) -> Option<Verdict> {
    let measured = stats::paired_ratio(with, without)?;
    let pairs = with.len();
    let floor = stats::noise_floor_of_median(noise, pairs).unwrap_or(0.0);
    let word = if pairs < LEAST_PAIRS as usize {
        Word::Inconclusive
    } else if measured.low > 1.0 && measured.mid > 1.0 + floor {
        Word::Proven
    } else if measured.high < 1.0 && measured.mid < 1.0 / (1.0 + floor) {
        Word::Disproven
    } else {
        Word::Inconclusive
    };
    Some(Verdict { word, measured, floor, pairs: pairs as u32 })
}

/// Ratios of trials of the same arm that follow each other: what noise alone does. With blocks in
/// the order AB, BA every second trial has such a neighbour.
pub(crate) fn same_arm(trials: &[Trial]) -> Vec<f64> {
    let counting: Vec<&Trial> = trials.iter().filter(|trial| trial.counts()).collect();
    counting
        .windows(2)
        .filter(|two| two[0].applied == two[1].applied && two[0].pair != two[1].pair)
        .filter(|two| two[0].rate > 0.0 && two[1].rate > 0.0)
        .map(|two| two[1].rate / two[0].rate)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trials of pairs in the order AB, BA, with a noise of so many percent (a normal
    /// distribution's standard deviation).
    fn trials(pairs: u32, effect: f64, noise: f64, rng: &mut fastrand::Rng) -> Vec<Trial> {
        let mut trials = Vec::new();
        for pair in 0..pairs {
            let order = if pair % 2 == 0 { [false, true] } else { [true, false] };
            for applied in order {
                let normal = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
                let rate = if applied { 1000.0 * effect } else { 1000.0 };
                trials.push(Trial::new(pair, applied, rate * (normal * noise).exp()));
            }
        }
        trials
    }

    fn words(effect: f64, noise: f64, pairs: u32) -> [usize; 3] {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut counts = [0; 3];
        for _ in 0..200 {
            let verdict = judge(&trials(pairs, effect, noise, &mut rng)).unwrap();
            counts[verdict.word as usize] += 1;
        }
        counts
    }

    #[test]
    fn no_difference_is_inconclusive_in_95_of_100() {
        for (noise, pairs) in [(0.02, 7), (0.1, 7), (0.1, 15)] {
            let [proven, disproven, inconclusive] = words(1.0, noise, pairs);
            assert!(inconclusive >= 190, "{noise} {pairs}: {proven} {disproven} {inconclusive}");
        }
    }

    #[test]
    fn a_tenth_more_is_found_and_so_is_a_tenth_less() {
        // Power at 4 % noise and 15 pairs.
        let [proven, disproven, _] = words(1.1, 0.04, 15);
        assert!(proven >= 180 && disproven == 0, "{proven} {disproven}");
        let [proven, disproven, _] = words(1.0 / 1.1, 0.04, 15);
        assert!(disproven >= 180 && proven == 0, "{proven} {disproven}");
    }

    #[test]
    fn a_spoiled_trial_counts_for_no_pair_and_no_floor() {
        let mut rng = fastrand::Rng::with_seed(3);
        let made = trials(12, 1.2, 0.02, &mut rng);
        let mut more = made.clone();
        let steal = Guard {
            id: crate::guards::GuardId::Steal,
            subject: None,
            value: crate::Reading::Present(0.5),
            threshold: 0.1,
        };
        // Each trial was made twice: the first time it was spoiled, and gave some absurd rate.
        for (place, trial) in made.iter().enumerate() {
            let spoiled = vec![steal.clone()];
            more.insert(2 * place, Trial { rate: 1e9, spoiled, ..trial.clone() });
        }
        assert_eq!(judge(&more), judge(&made));
        for trial in &mut more {
            trial.spoiled = vec![steal.clone()];
        }
        assert_eq!(judge(&more), None);
    }

    #[test]
    fn three_arms_are_three_verdicts() {
        let mut rng = fastrand::Rng::with_seed(5);
        let made = trials(12, 1.2, 0.01, &mut rng);
        let hard = |trial: &Trial| Trial { applied: true, rate: 900.0, ..trial.clone() };
        let hard = made.iter().filter(|trial| trial.applied).map(hard).collect();
        let affinity = Affinity::of(BTreeMap::new(), &made, hard);
        let word = |verdict: Option<Verdict>| verdict.map(|verdict| verdict.word);
        assert_eq!(word(affinity.hard), Some(Word::Disproven));
        assert_eq!(word(affinity.soft_over_hard), Some(Word::Proven));
    }

    #[test]
    fn a_few_pairs_decide_nothing() {
        let mut rng = fastrand::Rng::with_seed(3);
        let made = trials(LEAST_PAIRS - 1, 2.0, 0.01, &mut rng);
        assert_eq!(judge(&made).unwrap().word, Word::Inconclusive);
        assert_eq!(judge(&[]), None);
    }
}
