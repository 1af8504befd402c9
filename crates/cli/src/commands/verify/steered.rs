//! Trials of `untax steer`: no affinity, hard partitions, soft affinity.

use super::args::Args;
use super::workload::Measured;
use crate::commands::steer::choice::{Wanted, choose};
use crate::state::State;
use anyhow::bail;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use untax_core::Plan;
use untax_core::cpus::Cpus;
use untax_core::verdict::{self, Affinity};
use untax_remedies::rate::Rate;
use untax_steer::policy::{Rule, Tunables};
use untax_steer::{Backend, Beside, Chosen, Done, Order};
use untax_trials::{Arm, Cell, Design, Interrupted, Rig, Slot, Trial, judged};

/// The arms in the order of the design.
pub const ARMS: [&str; 3] = ["no affinity", "hard partitions", "soft affinity"];

const NONE: usize = 0;
const HARD: usize = 1;
/// The arm that the verdict is about.
pub const SOFT: usize = 2;

/// The remedy whose task this tries.
const REMEDY: &str = "soft-affinity";

/// The time between two samples of steering: its default.
const PERIOD: Duration = Duration::from_millis(100);

/// Whether trials of a plan are trials of steering: where a person says so, or where it has nothing else.
pub fn is_wanted(args: &Args, plan: &Plan) -> bool {
    let only_task = plan.steps.is_empty() && plan.tasks.iter().any(|task| task.remedy == REMEDY);
    args.steer || !args.instances.is_empty() || (only_task && args.workload_applied.is_none())
}

/// The order of the trials.
pub fn design(args: &Args, chosen: &[Chosen], length: Option<Duration>, seed: u64) -> Design {
    let name = args.workload.as_deref().unwrap_or("what is served anyway");
    let instances: Vec<String> =
        chosen.iter().map(|c| format!("{}={}", c.candidate.name, c.preferred)).collect();
    let arm = |arm: usize| {
        let configuration = match arm {
            NONE => name.to_owned(),
            _ => format!("{name} with {}", instances.join(" ")),
        };
        Arm { configuration, ..Arm::new(ARMS[arm]) }
    };
    let cell = Cell { name: "workload".to_owned(), length };
    Design::of_visits(seed, (0..ARMS.len()).map(arm).collect(), vec![cell], args.pairs)
}

/// The databases of this host, steered or not.
pub struct Steered<'a> {
    args: &'a Args,
    measured: &'a Measured,
    state: PathBuf,
    stop: Arc<AtomicBool>,
    chosen: Vec<Chosen>,
    arm: usize,
    beside: Option<Beside>,
    /// The name of the rates, as `transactions`.
    pub measure: &'static str,
}

impl<'a> Steered<'a> {
    /// Chooses CPUs, as `untax steer` does.
    pub fn new(
        args: &'a Args,
        state: &State,
        stop: Arc<AtomicBool>,
        measured: &'a Measured,
    ) -> anyhow::Result<Self> {
        let Tunables { hold, judge, .. } = Tunables::default();
        let wanted = Wanted { instances: &args.instances, hold, judge };
        let chosen = choose(&wanted, std::thread::sleep)?;
        let state = state.directory()?.to_owned();
        Ok(Self { args, measured, state, stop, chosen, arm: NONE, beside: None, measure: "" })
    }

    /// The databases and the CPUs that they prefer.
    pub fn chosen(&self) -> &[Chosen] {
        &self.chosen
    }

    fn set(&mut self, arm: usize) -> anyhow::Result<()> {
        if self.arm == arm {
            return Ok(());
        }
        if let Some(beside) = self.beside.take() {
            beside.stop()?;
        }
        self.arm = arm;
        if arm != NONE {
            self.beside = Some(Beside::start(self.order(arm), &self.state)?);
        }
        Ok(())
    }

    fn order(&self, arm: usize) -> Order {
        let mut instances = self.chosen.clone();
        if arm == HARD {
            for chosen in &mut instances {
                chosen.tunables.rule = Rule::Never;
            }
        }
        let backend = Backend::User;
        Order { backend, instances, period: PERIOD, run: State::new_run("steer") }
    }

    fn trial(&mut self) -> anyhow::Result<Rate> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        let rate = self.measured.rate(self.arm == SOFT, &self.stop)?;
        if self.beside.as_ref().is_some_and(Beside::has_ended) {
            self.beside.take().map_or(Ok(Done::default()), Beside::stop)?;
            bail!("steering ended during a trial: every database that it steered has ended");
        }
        Ok(rate)
    }
}

impl Rig for Steered<'_> {
    type Error = anyhow::Error;
    type Outcome = f64;

    fn prepare(&mut self, arms: &[usize], _: &mut dyn FnMut(&str, f64)) -> anyhow::Result<()> {
        self.set(arms.first().copied().unwrap_or(NONE))
    }

    fn run(&mut self, _: &Slot) -> anyhow::Result<Option<f64>> {
        if self.args.passive.is_none() {
            for _ in 0..self.args.warm_up {
                self.trial()?;
            }
        }
        let rate = self.trial()?;
        if !self.measure.is_empty() && self.measure != rate.measure {
            let (one, other) = (self.measure, rate.measure);
            bail!(
                "one trial gave {one} and another {other}: let the workload print its rate every time"
            );
        }
        self.measure = rate.measure;
        Ok(Some(rate.per_s))
    }

    fn tear_down(&mut self) -> anyhow::Result<()> {
        self.set(NONE)
    }
}

/// The trials that the verdict is about: with soft affinity, and without any.
pub fn soft_trials(made: &[Trial<f64>]) -> Vec<verdict::Trial> {
    let made: Vec<_> = made.iter().filter(|trial| trial.slot.arm != HARD).cloned().collect();
    judged(&made, SOFT, |rate| *rate)
}

/// The comparison of all three arms.
pub fn affinity(chosen: &[Chosen], made: &[Trial<f64>]) -> Affinity {
    let preferred = |chosen: &Chosen| -> (String, Cpus) {
        (chosen.candidate.name.clone(), chosen.preferred.clone())
    };
    let preferred: BTreeMap<_, _> = chosen.iter().map(preferred).collect();
    let hard: Vec<_> = made.iter().filter(|trial| trial.slot.arm == HARD).cloned().collect();
    Affinity::of(preferred, &soft_trials(made), judged(&hard, HARD, |rate| *rate))
}

#[cfg(test)]
mod tests {
    use super::super::args::tests::args;
    use super::*;
    use crate::commands::apply::tests::{makes, plan_of};
    use untax_core::plan::{Effect, Task};

    #[test]
    fn a_plan_that_hands_over_steering_alone_is_tried_by_steering() {
        let mut plan = plan_of(Vec::new());
        assert!(!is_wanted(&args("true"), &plan));
        plan.tasks.push(Task {
            remedy: REMEDY.to_owned(),
            summary: String::new(),
            databases: Vec::new(),
            file: None,
        });
        assert!(is_wanted(&args("true"), &plan));
        plan.steps.push(makes(std::path::Path::new("/x"), Effect::Now));
        assert!(!is_wanted(&args("true"), &plan), "its steps are tried");
        assert!(is_wanted(&Args { steer: true, ..args("true") }, &plan));
    }

    #[test]
    fn each_arm_is_told_apart() {
        let trial = |arm: usize, block: u32, outcome: f64| Trial {
            slot: Slot { block, arm, cell: 0, repeat: false },
            outcome,
            took_s: 1.0,
            guards: Vec::new(),
            sleeps: None,
        };
        let made: Vec<_> = (0..8)
            .flat_map(|block| {
                let noise = f64::from(block % 3);
                [(NONE, 100.0), (HARD, 80.0), (SOFT, 120.0)]
                    .map(|(arm, rate)| trial(arm, block, rate + noise))
            })
            .collect();
        let shown = affinity(&[], &made);
        let soft = verdict::judge(&soft_trials(&made)).unwrap();
        assert!(soft.measured.mid > 1.15 && soft.measured.mid < 1.25, "{soft:?}");
        assert!(shown.hard.unwrap().measured.mid < 0.85);
        assert!(shown.soft_over_hard.unwrap().measured.mid > 1.4);
        assert_eq!(shown.hard_trials.len(), 8);
    }
}
