//! An arm of a cell over another, by the trials of the same blocks.

use crate::platform::{AGAIN, ArmResult, CellResult, CellState, TrialResult};
use std::collections::BTreeMap;
use untax_core::bench::RatioVerdict;
use untax_core::verdict::{Word, conclude};
use untax_core::{Interval, stats};

/// What an arm is to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Over {
    /// Times as long as it takes.
    pub(super) time: Interval,
    pub(super) verdict: RatioVerdict,
    pub(super) pairs: u32,
}

fn speeds(cell: &CellResult, arm: &ArmResult) -> BTreeMap<u32, f64> {
    let counting = arm.trials.iter().filter(|trial| trial.spoiled.is_empty());
    let speed = |trial: &TrialResult| (trial.block, cell.better.speed(trial.measured.value));
    counting.map(speed).filter(|(_, speed)| speed.is_finite() && *speed > 0.0).collect()
}

fn measured<'a>(cell: &'a CellResult, arm: &str) -> Option<&'a ArmResult> {
    cell.arm(arm).filter(|result| result.state == CellState::Measured)
}

/// Whether a cell has trials of an arm that count.
pub(super) fn has(cell: &CellResult, arm: &str) -> bool {
    measured(cell, arm).is_some_and(|result| !speeds(cell, result).is_empty())
}

/// How an arm compares with another in a cell; none where one of them has no figure there.
pub(super) fn over(cell: &CellResult, arm: &str, over: &str) -> Option<Over> {
    debug_assert_ne!(arm, AGAIN);
    let (with, without) = (speeds(cell, measured(cell, arm)?), speeds(cell, measured(cell, over)?));
    let pairs = with.iter().filter_map(|(block, a)| without.get(block).map(|b| (*a, *b)));
    let (with, without): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let noise = cell.noise.as_ref().map_or(&[][..], |noise| &noise.ratios);
    let concluded = conclude(&with, &without, noise)?;
    let verdict = match concluded.word {
        Word::Proven => RatioVerdict::Faster,
        Word::Disproven => RatioVerdict::Slower,
        Word::Inconclusive => RatioVerdict::Inconclusive,
    };
    let Interval { mid, low, high } = concluded.measured;
    let time = Interval::new(high.recip(), mid.recip(), low.recip());
    Some(Over { time, verdict, pairs: concluded.pairs })
}

/// By how much something else that was measured is more in an arm than in another, in its own unit.
pub(super) fn more(cell: &CellResult, id: &str, arm: &str, over: &str) -> Option<Interval> {
    let values = |arm: &str| -> Option<BTreeMap<u32, f64>> {
        let counting = measured(cell, arm)?.trials.iter();
        let value = |trial: &TrialResult| {
            let extra = trial.measured.extras.iter().find(|extra| extra.id == id)?;
            Some((trial.block, extra.value))
        };
        Some(counting.filter(|trial| trial.spoiled.is_empty()).filter_map(value).collect())
    };
    let (with, without) = (values(arm)?, values(over)?);
    let more: Vec<f64> =
        with.iter().filter_map(|(block, a)| without.get(block).map(|b| a - b)).collect();
    stats::median_interval(&more)
}
