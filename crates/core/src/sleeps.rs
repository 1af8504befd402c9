//! How idle CPUs slept beside trials: with CPUs that halt, one and the same cell can run in two regimes that
//! are a factor of five apart, by where the scheduler put client and server.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// How idle CPUs slept beside one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sleeps {
    /// How often a CPU was put to sleep, polling left out, for each context switch: next to nothing where
    /// CPUs are busy or poll, up to a half where each request wakes one.
    pub per_switch: Reading<f64>,
    /// What decides it, such as `haltpoll, guest_halt_poll_ns 0`.
    pub knob: String,
}

/// Trials are in two regimes if their rates differ by this factor. MariaDB with two clients on two virtual CPUs
/// that halt ran at 20,800 and at 109,600 requests a second.
pub const APART: f64 = 5.0;

/// Fewer sleeps than this for each context switch are those of the rest of the machine: daemons, timers.
const FEWEST: f64 = 0.02;

/// Where the trials of one arm and cell part in two regimes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regimes {
    /// Trials in which CPUs stayed awake, and those in which they slept.
    pub trials: [usize; 2],
    /// The median of sleeps for each context switch in both.
    pub per_switch: [f64; 2],
    /// The most of all trials over the fewest.
    pub apart: f64,
}

impl Regimes {
    /// Looks at the sleeps of all trials of one arm and cell, never at what the trials gave. `None` where they
    /// are of one kind.
    pub fn of(per_switch: &[f64]) -> Option<Self> {
        let raised = || per_switch.iter().map(|share| share.max(FEWEST));
        let (least, most) = (raised().reduce(f64::min)?, raised().reduce(f64::max)?);
        let apart = most / least;
        if apart <= APART {
            return None;
        }
        let border = (least * most).sqrt();
        let side = |asleep: bool| -> Vec<f64> {
            per_switch.iter().copied().filter(|share| (*share > border) == asleep).collect()
        };
        let [awake, asleep] = [side(false), side(true)];
        let median = |shares: &[f64]| crate::stats::median(shares).unwrap_or(0.0);
        Some(Self {
            trials: [awake.len(), asleep.len()],
            per_switch: [median(&awake), median(&asleep)],
            apart,
        })
    }
}

/// In one line, for a person.
impl std::fmt::Display for Regimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { trials: [awake, asleep], per_switch: [few, many], .. } = self;
        write!(
            f,
            "two regimes: CPUs slept {many:.2} times for each context switch in {asleep} of {} trials, \
             {few:.2} times in the others",
            awake + asleep
        )
    }
}

/// How idle CPUs slept in all trials of one arm and cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What decided it: one, unless somebody set it meanwhile.
    pub knobs: Vec<String>,
    /// The median of sleeps for each context switch, or why it is not known.
    pub per_switch: Reading<f64>,
    /// How the trials part, where they do.
    pub regimes: Option<Regimes>,
}

impl Summary {
    /// That of some trials; `None` where none of them says how CPUs slept.
    pub fn of<'a>(trials: impl Iterator<Item = &'a Sleeps>) -> Option<Self> {
        let trials: Vec<&Sleeps> = trials.collect();
        let mut knobs: Vec<String> = trials.iter().map(|sleeps| sleeps.knob.clone()).collect();
        knobs.sort();
        knobs.dedup();
        let shares: Vec<f64> =
            trials.iter().filter_map(|sleeps| sleeps.per_switch.value()).copied().collect();
        let gap = &trials.first()?.per_switch;
        let per_switch =
            crate::stats::median(&shares).map_or_else(|| gap.clone(), Reading::Present);
        Some(Self { knobs, per_switch, regimes: Regimes::of(&shares) })
    }
}

/// In one line, for a person.
impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; ", self.knobs.join(" and "))?;
        match (&self.regimes, &self.per_switch) {
            (Some(regimes), _) => write!(f, "{regimes}"),
            (None, Reading::Present(share)) => {
                write!(f, "CPUs slept {share:.2} times for each context switch")
            }
            (None, gap) => write!(f, "sleeps not counted: {}", gap.why().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_part_where_sleeps_are_a_factor_of_five_apart() {
        let two = Regimes::of(&[0.40, 0.03, 0.42, 0.05]).unwrap();
        assert_eq!(two.trials, [2, 2]);
        assert!(
            two.to_string().contains("slept 0.41 times for each context switch in 2 of 4 trials")
        );
        assert_eq!(Regimes::of(&[0.40, 0.09, 0.42]), None, "less than a factor of five");
        assert_eq!(Regimes::of(&[0.08, 0.001]), None, "so few are those of other programs");
        assert_eq!(Regimes::of(&[]), None);
    }

    #[test]
    fn trials_are_summed_up_with_the_knob() {
        let sleeps = |share: Reading<f64>| Sleeps { per_switch: share, knob: "a knob".to_owned() };
        let summary = |shares: &[f64]| {
            let all: Vec<Sleeps> = shares.iter().map(|s| sleeps(Reading::Present(*s))).collect();
            Summary::of(all.iter()).unwrap().to_string()
        };
        assert_eq!(summary(&[0.3, 0.4]), "a knob; CPUs slept 0.35 times for each context switch");
        assert!(summary(&[0.3, 0.01]).starts_with("a knob; two regimes: CPUs slept 0.30 times"));
        let unknown = sleeps(Reading::absent("no driver"));
        assert_eq!(
            Summary::of([&unknown].into_iter()).unwrap().to_string(),
            "a knob; sleeps not counted: no driver"
        );
        assert!(Summary::of([].into_iter()).is_none());
    }
}
