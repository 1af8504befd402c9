//! What a result says for checks to come.

use crate::platform::{ArmResult, CellResult, Placement, PlatformBench};
use untax_core::path_costs::{Connections, PathCosts, RoundTrip};
use untax_core::{Interval, stats};

/// The workloads whose values these are.
const ROUND_TRIP: &str = "rr";
const CONNECTION: &str = "crr";

/// The prices of paths in a result.
pub fn costs(bench: &PlatformBench) -> PathCosts {
    let is_priced = |workload: &str, placement| {
        placement == Placement::OneCpu && [ROUND_TRIP, CONNECTION].contains(&workload)
    };
    let cells = bench.cells.iter().filter(|cell| is_priced(&cell.workload, cell.placement));
    let lines = bench.lines.iter().filter(|line| is_priced(&line.workload, line.placement));
    let lines = lines.filter(|line| line.workload == CONNECTION);
    PathCosts {
        run: bench.run.clone(),
        taken_at: bench.taken_at,
        cpu_model: bench.cpu_model.clone(),
        kernel_release: bench.kernel_release.clone(),
        round_trips: cells
            .filter(|cell| cell.workload == ROUND_TRIP)
            .flat_map(|cell| round_trips(cell, &bench.baseline))
            .collect(),
        connections: lines
            .map(|line| {
                let slope = line.per_thousand;
                Connections {
                    series: line.series.clone(),
                    per_thousand_us: Interval::new(slope.low, slope.median, slope.high),
                }
            })
            .collect(),
    }
}

/// Each arm less the baseline, block by block.
fn round_trips(cell: &CellResult, baseline: &str) -> Vec<RoundTrip> {
    let Some(base) = cell.arm(baseline) else { return Vec::new() };
    let trip = |arm: &ArmResult| {
        let more = counting(arm).filter_map(|(block, value)| {
            let (_, base) = counting(base).find(|(known, _)| *known == block)?;
            Some(value - base)
        });
        let more: Vec<f64> = more.collect();
        let extra_us = stats::median_interval(&more)?;
        Some(RoundTrip { path: arm.arm.clone(), extra_us })
    };
    cell.arms.iter().filter(|arm| arm.arm != baseline).filter_map(trip).collect()
}

fn counting(arm: &ArmResult) -> impl Iterator<Item = (u32, f64)> {
    let trials = arm.trials.iter().filter(|trial| trial.spoiled.is_empty());
    trials.map(|trial| (trial.block, trial.measured.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{CellState, Cpus, Measured, TrialResult};

    fn arm(id: &str, values: &[f64]) -> ArmResult {
        let trial = |(block, value): (usize, &f64)| TrialResult {
            block: block as u32,
            measured: Measured::of(*value),
            spoiled: Vec::new(),
        };
        ArmResult {
            arm: id.to_owned(),
            state: CellState::Measured,
            why: None,
            value: stats::median_interval(values).map(Into::into),
            extras: Vec::new(),
            explained: None,
            ratio: None,
            trials: values.iter().enumerate().map(trial).collect(),
        }
    }

    #[test]
    fn a_slow_block_of_all_arms_is_no_price() {
        let cell = CellResult {
            workload: ROUND_TRIP.to_owned(),
            summary: String::new(),
            unit: "us".to_owned(),
            better: crate::platform::Better::Lower,
            explains: false,
            placement: Placement::OneCpu,
            cpus: Cpus::default(),
            state: CellState::Measured,
            why: None,
            blocks: 3,
            arms: vec![arm("wire", &[7.0, 17.0, 7.0]), arm("routed", &[9.0, 19.0, 9.0])],
            stands_for: None,
            published: Vec::new(),
            noise: None,
            aa: None,
        };
        let trips = round_trips(&cell, "wire");
        assert_eq!(trips.len(), 1);
        assert_eq!((trips[0].path.as_str(), trips[0].extra_us), ("routed", Interval::exact(2.0)));
    }
}
