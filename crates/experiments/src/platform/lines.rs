//! How the cost of an arm grows with a number: of services, of rules.
//!
//! Arms of one series differ by their number alone. Each block gives a line through its own values, by least
//! squares; the median over the blocks is the slope, with its interval. So what all arms of a block share,
//! such as a slow second of the machine, moves the line and not its slope.

use super::arm::{Arm, Step};
use super::cell::Better;
use super::schema::{ArmResult, CellResult, Line};
use std::collections::BTreeMap;
use untax_core::stats;

/// The lines of all cells whose values are times.
pub(crate) fn of(arms: &[Arm], cells: &[CellResult]) -> Vec<Line> {
    let mut series: Vec<&Step> = Vec::new();
    for step in arms.iter().filter_map(|arm| arm.step.as_ref()) {
        if series.iter().all(|known| known.series != step.series) {
            series.push(step);
        }
    }
    let timed = cells.iter().filter(|cell| cell.better == Better::Lower);
    timed.flat_map(|cell| series.iter().filter_map(|step| line(arms, cell, step))).collect()
}

fn line(arms: &[Arm], cell: &CellResult, series: &Step) -> Option<Line> {
    let number = |result: &ArmResult| {
        let step = arms.iter().find(|arm| arm.id == result.arm)?.step.as_ref()?;
        (step.series == series.series).then_some(step.number)
    };
    let along: Vec<(u32, &ArmResult)> =
        cell.arms.iter().filter_map(|result| Some((number(result)?, result))).collect();
    let along: Vec<_> = along.into_iter().filter(|(_, result)| result.value.is_some()).collect();
    let (least, most) = (along.iter().map(|a| a.0).min()?, along.iter().map(|a| a.0).max()?);
    let fits: Vec<[f64; 2]> = blocks(&along).iter().filter_map(|points| fit(points)).collect();
    let part = |which: usize| {
        let values: Vec<f64> = fits.iter().map(|fit| fit[which]).collect();
        stats::median_interval(&values)
    };
    let (at_none, slope) = (part(0)?, part(1)?);
    let apart = |(number, result): &(u32, &ArmResult)| {
        let median = result.value?.median;
        Some((at_none.mid + slope.mid * f64::from(*number) - median).abs() / median)
    };
    Some(Line {
        workload: cell.workload.clone(),
        placement: cell.placement,
        series: series.series.clone(),
        counts: series.counts.clone(),
        unit: cell.unit.clone(),
        at_none: at_none.into(),
        per_thousand: slope.map(|slope| slope * 1e3).into(),
        blocks: fits.len() as u32,
        numbers: [least, most],
        most_apart: along.iter().filter_map(apart).fold(0.0, f64::max),
    })
}

/// Numbers and values of the blocks that have all arms of the series.
fn blocks(along: &[(u32, &ArmResult)]) -> Vec<Vec<(f64, f64)>> {
    let mut blocks: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    for (number, result) in along {
        for trial in result.trials.iter().filter(|trial| trial.spoiled.is_empty()) {
            let point = (f64::from(*number), trial.measured.value);
            blocks.entry(trial.block).or_default().push(point);
        }
    }
    blocks.into_values().filter(|points| points.len() == along.len()).collect()
}

/// The line through points by least squares: its value at none, and its slope. None through one number.
fn fit(points: &[(f64, f64)]) -> Option<[f64; 2]> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (spread > 0.0).then(|| [y - both / spread * x, both / spread])
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
