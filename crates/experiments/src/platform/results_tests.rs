use super::*;
use crate::platform::cell::Better;
use crate::platform::fake::{cell, plan, trials};
use crate::platform::run::Outcome;
use untax_core::Reading;
use untax_core::guards::{Guard, GuardId};

#[test]
fn a_slow_arm_is_slower_and_the_baseline_is_itself() {
    let plan = plan(&["base", "slow", "same"], vec![cell("work", Better::Higher)]);
    let outcome = Outcome { trials: trials(&[100.0, 50.0, 100.0, 100.0], 8), ..Outcome::default() };
    let result = outcome.tally(&plan).cell(0);
    assert_eq!((result.state, result.blocks), (CellState::Measured, 8));
    let ratio = |id: &str| result.arm(id).and_then(|arm| arm.ratio).unwrap();
    assert_eq!(ratio("slow").verdict, RatioVerdict::Slower);
    assert!((ratio("slow").factor - 0.5).abs() < 0.01 && ratio("slow").pairs == 8);
    assert_eq!(ratio("same").verdict, RatioVerdict::Inconclusive);
    assert!(result.arm("base").unwrap().ratio.is_none());
    assert_eq!(result.noise.unwrap().ratios.len(), 8);
    assert_eq!(result.arms[1].extras[0].id, "latency-p99");
}

#[test]
fn a_time_that_doubles_is_half_the_speed() {
    let plan = plan(&["base", "slow"], vec![cell("work", Better::Lower)]);
    let outcome = Outcome { trials: trials(&[10.0, 20.0, 10.0], 8), ..Outcome::default() };
    let result = outcome.tally(&plan).cell(0);
    let slow = result.arm("slow").unwrap();
    assert!((slow.value.unwrap().median - 20.0).abs() < 0.2, "values keep their unit");
    assert!((slow.ratio.unwrap().factor - 0.5).abs() < 0.01);
    assert_eq!(slow.ratio.unwrap().verdict, RatioVerdict::Slower);
}

#[test]
fn few_pairs_decide_nothing() {
    let plan = plan(&["base", "slow"], vec![cell("work", Better::Higher)]);
    let outcome = Outcome { trials: trials(&[100.0, 50.0, 100.0], 3), ..Outcome::default() };
    let ratio = outcome.tally(&plan).ratio(0, 1, 0).unwrap();
    assert_eq!((ratio.verdict, ratio.pairs), (RatioVerdict::Inconclusive, 3));
}

#[test]
fn spoiled_trials_count_for_nothing() {
    let plan = plan(&["base", "slow"], vec![cell("work", Better::Higher)]);
    let mut trials = trials(&[100.0, 50.0, 100.0], 8);
    let steal =
        Guard { id: GuardId::Steal, subject: None, value: Reading::Present(0.5), threshold: 0.1 };
    for trial in trials.iter_mut().filter(|trial| trial.slot.arm == 1) {
        trial.guards = vec![steal.clone()];
    }
    let outcome = Outcome { trials, ..Outcome::default() };
    let result = outcome.tally(&plan).cell(0);
    let slow = result.arm("slow").unwrap();
    assert_eq!((slow.state, slow.value, slow.ratio), (CellState::Spoiled, None, None));
    assert!(slow.why.as_ref().unwrap().contains("steal"), "{slow:?}");
    assert_eq!(slow.trials.len(), 8, "they are shown");
}

#[test]
fn a_saturated_arm_is_said_to_be_and_has_no_verdict() {
    let plan = plan(&["base", "slow"], vec![cell("work", Better::Higher)]);
    let mut trials = trials(&[100.0, 50.0, 100.0], 8);
    for trial in trials.iter_mut().filter(|trial| trial.slot.arm == 1) {
        trial.outcome.saturated = Some("the client's CPU".to_owned());
    }
    let outcome = Outcome { trials, ..Outcome::default() };
    let slow = outcome.tally(&plan).cell(0).arm("slow").unwrap().clone();
    assert_eq!((slow.state, slow.why.as_deref()), (CellState::Saturated, Some("the client's CPU")));
    assert_eq!(slow.ratio.unwrap().verdict, RatioVerdict::Inconclusive);
}

#[test]
fn an_arm_that_failed_says_why() {
    let plan = plan(&["base", "slow"], vec![cell("work", Better::Higher)]);
    let trials: Vec<_> =
        trials(&[100.0, 50.0, 100.0], 8).into_iter().filter(|t| t.slot.arm != 1).collect();
    let failures = BTreeMap::from([((0, 1), vec!["no such program".to_owned()])]);
    let outcome = Outcome { trials, failures, ..Outcome::default() };
    let slow = outcome.tally(&plan).cell(0).arm("slow").unwrap().clone();
    assert_eq!((slow.state, slow.why.as_deref()), (CellState::Failed, Some("no such program")));
}

#[test]
fn without_an_arm_that_runs_nothing_is_reached() {
    let plan = plan(&[], vec![cell("work", Better::Higher)]);
    assert_eq!(Outcome::default().tally(&plan).cell(0).state, CellState::NotReached);
}
