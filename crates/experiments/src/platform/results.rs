//! From trials to what may be said of each arm in each cell.

use super::arm::Arm;
use super::cell::Cell;
use super::measured::{Extra, Measured};
use super::schema::{ArmResult, CellResult, CellState, Ratio, TrialResult};
use std::collections::BTreeMap;
use untax_core::bench::{Noise, RatioVerdict};
use untax_core::stats;
use untax_core::verdict::{LEAST_PAIRS, Word, conclude};
use untax_trials::Trial;

/// All trials of a bench and what stands behind them.
pub(crate) struct Tally<'a> {
    /// The arms that run; their places are those of the design. The baseline is the first.
    pub(crate) arms: &'a [Arm],
    /// The cells, by their places in the design.
    pub(crate) cells: &'a [Cell],
    /// Why arms failed, by cell and arm; the last failure stands.
    pub(crate) failures: &'a BTreeMap<(usize, usize), Vec<String>>,
    pub(crate) trials: &'a [Trial<Measured>],
}

/// Speeds by block.
type Speeds = BTreeMap<u32, f64>;

impl Tally<'_> {
    /// The place of the baseline that is measured once more.
    pub(crate) fn again(&self) -> usize {
        self.arms.len()
    }

    fn of(&self, cell: usize, arm: usize) -> impl Iterator<Item = &Trial<Measured>> {
        self.trials.iter().filter(move |t| t.slot.cell == cell && t.slot.arm == arm)
    }

    /// Speeds of the trials that count.
    fn speeds(&self, cell: usize, arm: usize) -> Speeds {
        let better = self.cells[cell].workload.better;
        let counting = self.of(cell, arm).filter(|trial| trial.counts());
        let speed = counting.map(|t| (t.slot.block, better.speed(t.outcome.value)));
        speed.filter(|(_, speed)| speed.is_finite() && *speed > 0.0).collect()
    }

    /// Blocks in which something was measured.
    pub(crate) fn blocks(&self, cell: usize) -> u32 {
        let blocks = self.trials.iter().filter(|t| t.slot.cell == cell).map(|t| t.slot.block + 1);
        blocks.max().unwrap_or(0)
    }

    /// The baseline over itself, as ratios of each block.
    fn noise(&self, cell: usize) -> Vec<f64> {
        let (again, first) = paired(&self.speeds(cell, self.again()), &self.speeds(cell, 0));
        again.iter().zip(&first).map(|(again, first)| again / first).collect()
    }

    /// An arm over another in a cell.
    pub(crate) fn ratio(&self, cell: usize, of: usize, over: usize) -> Option<Ratio> {
        let (with, without) = paired(&self.speeds(cell, of), &self.speeds(cell, over));
        let verdict = conclude(&with, &without, &self.noise(cell))?;
        let is_saturated = |arm| self.saturation(cell, arm).is_some();
        let word = match verdict.word {
            _ if is_saturated(of) || is_saturated(over) => RatioVerdict::Inconclusive,
            Word::Proven => RatioVerdict::Faster,
            Word::Disproven => RatioVerdict::Slower,
            Word::Inconclusive => RatioVerdict::Inconclusive,
        };
        let untax_core::Interval { mid, low, high } = verdict.measured;
        Some(Ratio { factor: mid, low, high, pairs: verdict.pairs, verdict: word })
    }

    /// What was used up in most of the trials that count.
    fn saturation(&self, cell: usize, arm: usize) -> Option<String> {
        let counting: Vec<_> = self.of(cell, arm).filter(|trial| trial.counts()).collect();
        let mut saturated = counting.iter().filter_map(|trial| trial.outcome.saturated.as_ref());
        let all = saturated.clone().count();
        (2 * all > counting.len()).then(|| saturated.next_back().cloned()).flatten()
    }

    /// The widest interval of the ratios that decide nothing yet, bound over bound.
    pub(crate) fn widest(&self, cell: usize) -> Option<f64> {
        if self.cells[cell].workload.explains && self.blocks(cell) >= LEAST_PAIRS {
            return None;
        }
        let ratios = (1..self.arms.len()).filter_map(|arm| self.ratio(cell, arm, 0));
        let open = ratios.filter(|ratio| ratio.verdict == RatioVerdict::Inconclusive);
        open.map(|ratio| ratio.high / ratio.low).filter(|w| w.is_finite()).reduce(f64::max)
    }

    /// A cell as results have it.
    pub(crate) fn cell(&self, place: usize) -> CellResult {
        let cell = &self.cells[place];
        let arms: Vec<ArmResult> = (0..self.arms.len()).map(|arm| self.arm(place, arm)).collect();
        // Without an arm that runs nothing is reached.
        let (state, why) = match arms.first().map(|baseline| (baseline.state, &baseline.why)) {
            Some((CellState::Measured | CellState::Saturated, _)) => (CellState::Measured, None),
            Some((state, why)) => (state, why.clone()),
            None => (CellState::NotReached, None),
        };
        let ratios = self.noise(place);
        let floor = stats::noise_floor_of_median(&ratios, ratios.len());
        let (again, first) = paired(&self.speeds(place, self.again()), &self.speeds(place, 0));
        let work = &cell.workload;
        CellResult {
            workload: work.id.clone(),
            summary: work.summary.clone(),
            unit: work.unit.clone(),
            better: work.better,
            explains: work.explains,
            placement: cell.placement,
            cpus: cell.cpus.clone(),
            state,
            why,
            blocks: self.blocks(place),
            arms,
            stands_for: work.stands_for.clone(),
            published: work.published.clone(),
            noise: floor.map(|floor| Noise { ratios, floor }),
            aa: stats::paired_ratio(&again, &first).map(Into::into),
        }
    }

    fn arm(&self, cell: usize, arm: usize) -> ArmResult {
        let all: Vec<_> = self.of(cell, arm).collect();
        let counting: Vec<_> = all.iter().copied().filter(|trial| trial.counts()).collect();
        let values: Vec<f64> = counting.iter().map(|trial| trial.outcome.value).collect();
        let failure = self.failures.get(&(cell, arm)).and_then(|all| all.last());
        let saturation = self.saturation(cell, arm);
        let (state, why) = match (&values[..], saturation, failure) {
            ([], _, Some(why)) => (CellState::Failed, Some(why.clone())),
            ([], ..) if all.is_empty() => (CellState::NotReached, None),
            ([], ..) => {
                let guards = all.iter().flat_map(|trial| trial.spoiled());
                (CellState::Spoiled, guards.last().map(ToString::to_string))
            }
            (_, Some(what), _) => (CellState::Saturated, Some(what)),
            (_, None, why) => (CellState::Measured, why.cloned()),
        };
        let trial = |trial: &&Trial<Measured>| TrialResult {
            block: trial.slot.block,
            measured: trial.outcome.clone(),
            spoiled: trial.spoiled().cloned().collect(),
        };
        ArmResult {
            arm: self.arms[arm].id.clone(),
            state,
            why,
            value: stats::median_interval(&values).map(Into::into),
            extras: extras(&counting),
            ratio: if arm == 0 { None } else { self.ratio(cell, arm, 0) },
            explained: None,
            trials: all.iter().map(trial).collect(),
        }
    }
}

/// Medians of what else trials measured, in the order in which it appears.
fn extras(trials: &[&Trial<Measured>]) -> Vec<Extra> {
    let mut each: Vec<(&Extra, Vec<f64>)> = Vec::new();
    for extra in trials.iter().flat_map(|trial| &trial.outcome.extras) {
        match each.iter_mut().find(|(known, _)| known.id == extra.id) {
            Some((_, values)) => values.push(extra.value),
            None => each.push((extra, vec![extra.value])),
        }
    }
    let median = |(extra, values): (&Extra, Vec<f64>)| {
        Some(Extra { value: stats::median(&values)?, ..extra.clone() })
    };
    each.into_iter().filter_map(median).collect()
}

/// The speeds of the blocks that both have.
fn paired(a: &Speeds, b: &Speeds) -> (Vec<f64>, Vec<f64>) {
    a.iter().filter_map(|(block, a)| b.get(block).map(|b| (*a, *b))).unzip()
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
