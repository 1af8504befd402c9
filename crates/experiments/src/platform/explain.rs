//! Why an arm is slower: system calls of an operation, times what each costs more in that arm.

use super::measured::Extra;
use super::schema::{CellResult, Explained};

/// The extra of a baseline that counts its system calls for each operation.
pub const CALLS: &str = "system-calls";

/// The unit of cells that say what a system call costs.
pub const NS_PER_CALL: &str = "ns/call";

/// Adds to each arm of each cell what its system calls explain: where the baseline's calls were counted, the
/// cost of a call was measured in both arms, and the server has one CPU, so that its rate is the time of an
/// operation on that CPU.
pub(crate) fn explain(all: &mut [CellResult]) {
    let costs = all.iter().find(|cell| cell.explains && cell.unit == NS_PER_CALL).cloned();
    let Some(costs) = costs else { return };
    let cost = |arm: &str| costs.arm(arm)?.value.map(|value| value.median);
    for cell in all.iter_mut().filter(|cell| !cell.explains && cell.cpus.server.len() == 1) {
        let Some(baseline) = cell.arms.first() else { continue };
        let calls = baseline.extras.iter().find(|extra: &&Extra| extra.id == CALLS);
        let (Some(calls), Some(rate)) = (calls.map(|calls| calls.value), baseline.value) else {
            continue;
        };
        let Some(base_ns) = cost(&baseline.arm) else { continue };
        let operation_ns = 1e9 / cell.better.speed(rate.median);
        for arm in cell.arms.iter_mut().skip(1) {
            let more = cost(&arm.arm).map(|ns| ns - base_ns);
            arm.explained = more.map(|more_ns| Explained {
                calls,
                more_ns_each: more_ns,
                operation_ns,
                factor: operation_ns / (operation_ns + (calls * more_ns).max(0.0)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cell::Better;
    use crate::platform::fake::{cell, plan, trials};
    use crate::platform::run::Outcome;

    /// A cell of values by arm, the baseline's repeat last.
    fn measured(values: &[f64], unit: &str, explains: bool, calls: Option<f64>) -> CellResult {
        let mut work = cell("work", Better::Higher);
        work.workload.unit = unit.to_owned();
        work.workload.explains = explains;
        work.cpus.server = vec![0];
        let plan = plan(&["base", "slow"], vec![work]);
        let mut trials = trials(values, 8);
        for trial in trials.iter_mut().filter(|trial| trial.slot.arm == 0) {
            if let Some(calls) = calls {
                trial.outcome = trial.outcome.clone().with(CALLS, calls, "1/operation");
            }
        }
        let outcome = Outcome { trials, ..Outcome::default() };
        outcome.tally(&plan).cell(0)
    }

    #[test]
    fn calls_times_what_each_costs_more_is_the_predicted_loss() {
        // 10 us an operation with 5 calls, each of which costs 2 us more: half the speed.
        let work = measured(&[1e5, 5e4, 1e5], "operations/s", false, Some(5.0));
        let costs = measured(&[100.0, 2100.0, 100.0], NS_PER_CALL, true, None);
        let mut cells = [work, costs];
        explain(&mut cells);
        let explained = cells[0].arm("slow").unwrap().explained.unwrap();
        assert!((explained.factor - 0.5).abs() < 0.01, "{explained:?}");
        assert!(cells[0].arm("base").unwrap().explained.is_none());
    }

    #[test]
    fn nothing_is_explained_where_calls_or_their_cost_are_not_known() {
        let costs = measured(&[100.0, 2100.0, 100.0], NS_PER_CALL, true, None);
        let uncounted = measured(&[1e5, 5e4, 1e5], "operations/s", false, None);
        let counted = measured(&[1e5, 5e4, 1e5], "operations/s", false, Some(5.0));
        let mut cells = [uncounted, costs];
        explain(&mut cells);
        assert!(cells[0].arms.iter().all(|arm| arm.explained.is_none()));
        let mut alone = [counted];
        explain(&mut alone);
        assert!(alone[0].arms.iter().all(|arm| arm.explained.is_none()));
    }
}
