//! A family that is made up, for tests.

use super::arm::Arm;
use super::cell::{Better, Cell, Published, Workload};
use super::error::Trouble;
use super::family::{Family, Needs, Running};
use super::measured::Measured;
use super::placement::{Cpus, Placement};
use super::run::Outcome;
use super::schema::PlatformBench;
use super::{guard::Guard, run::Plan, warnings};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use untax_trials::{Interrupt, Slot, Trial};

/// Arms whose values are known.
pub(crate) struct Fake {
    /// The value of each arm, and its noise as a share.
    pub(crate) arms: Vec<(Arm, f64)>,
    pub(crate) noise: f64,
    /// How often an arm fails before it works.
    pub(crate) failures: BTreeMap<String, u32>,
    /// Raised after so many trials.
    pub(crate) interrupt_after: Option<u32>,
    /// What was done, in order.
    pub(crate) steps: Rc<RefCell<Vec<String>>>,
    pub(crate) rng: Rc<RefCell<fastrand::Rng>>,
    pub(crate) trials: Rc<RefCell<u32>>,
}

impl Fake {
    pub(crate) fn new(values: &[(&str, f64)]) -> Self {
        let arm = |(id, value): &(&str, f64)| (Arm::new(id, "made up"), *value);
        Self {
            arms: values.iter().map(arm).collect(),
            noise: 0.01,
            failures: BTreeMap::new(),
            interrupt_after: None,
            steps: Rc::default(),
            rng: Rc::new(RefCell::new(fastrand::Rng::with_seed(5))),
            trials: Rc::default(),
        }
    }
}

/// One of its arms that is up.
struct FakeRunning {
    id: String,
    value: f64,
    noise: f64,
    interrupt_after: Option<u32>,
    steps: Rc<RefCell<Vec<String>>>,
    rng: Rc<RefCell<fastrand::Rng>>,
    trials: Rc<RefCell<u32>>,
}

impl Family for Fake {
    fn arms(&mut self) -> Vec<Arm> {
        self.arms.iter().map(|(arm, _)| arm.clone()).collect()
    }

    fn workloads(&mut self) -> Vec<Workload> {
        vec![work("work"), work("more")]
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn start(&mut self, arm: &Arm, _: &Cell, _: &Interrupt) -> Result<Box<dyn Running>, Trouble> {
        self.steps.borrow_mut().push(format!("start {}", arm.id));
        if let Some(left) = self.failures.get_mut(&arm.id).filter(|left| **left > 0) {
            *left -= 1;
            return Err(Trouble::Failed(format!("{} is broken", arm.id)));
        }
        let value = self.arms.iter().find(|(known, _)| known.id == arm.id).map_or(0.0, |a| a.1);
        Ok(Box::new(FakeRunning {
            id: arm.id.clone(),
            value,
            noise: self.noise,
            interrupt_after: self.interrupt_after,
            steps: Rc::clone(&self.steps),
            rng: Rc::clone(&self.rng),
            trials: Rc::clone(&self.trials),
        }))
    }
}

impl Running for FakeRunning {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        self.steps.borrow_mut().push(format!("trial {}", self.id));
        *self.trials.borrow_mut() += 1;
        if self.interrupt_after.is_some_and(|after| *self.trials.borrow() > after) {
            interrupt.raise();
            interrupt.check()?;
        }
        let noise = 1.0 + self.noise * (self.rng.borrow_mut().f64() - 0.5);
        Ok(Measured::of(self.value * noise).counting(1000.0).with("latency-p99", 7.0, "us"))
    }
}

impl Drop for FakeRunning {
    fn drop(&mut self) {
        self.steps.borrow_mut().push(format!("end {}", self.id));
    }
}

pub(crate) fn work(id: &str) -> Workload {
    Workload {
        trial: Duration::from_millis(1),
        start: Duration::from_millis(1),
        is_usual: true,
        is_quick: true,
        ..Workload::new(id, "does something", "operations/s", Better::Higher)
    }
}

pub(crate) fn cell(id: &str, better: Better) -> Cell {
    let published =
        vec![Published { arm: "slow".to_owned(), factor: 0.6, source: "an article".to_owned() }];
    let workload = Workload { better, published, ..work(id) };
    Cell { workload, placement: Placement::OneCpu, cpus: Cpus::default() }
}

pub(crate) fn plan(arms: &[&str], cells: Vec<Cell>) -> Plan {
    Plan {
        arms: arms.iter().map(|id| Arm::new(id, "made up")).collect(),
        cells,
        seed: 7,
        budget: Duration::from_secs(30),
        most_blocks: Some(8),
        most_others: None,
    }
}

/// Trials of one cell: the value of each arm, the baseline's repeat last, in so many blocks.
pub(crate) fn trials(values: &[f64], blocks: u32) -> Vec<Trial<Measured>> {
    let mut rng = fastrand::Rng::with_seed(3);
    let each = (0..blocks).flat_map(|block| (0..values.len()).map(move |arm| (block, arm)));
    each.map(|(block, arm)| {
        let value = values[arm] * (1.0 + 0.01 * (rng.f64() - 0.5));
        let slot = Slot { block, arm, cell: 0, repeat: false };
        let outcome = Measured::of(value).with("latency-p99", 7.0, "us");
        Trial { slot, outcome, took_s: 1.0, guards: Vec::new(), sleeps: None }
    })
    .collect()
}

/// A result with a slow arm, one that cannot run, a failed guard, and a cell that was not reached.
pub(crate) fn result() -> PlatformBench {
    let plan =
        plan(&["base", "slow"], vec![cell("work", Better::Higher), cell("more", Better::Higher)]);
    let outcome = Outcome { trials: trials(&[100.0, 50.0, 100.0], 8), ..Outcome::default() };
    let tally = outcome.tally(&plan);
    let cells = vec![tally.cell(0), tally.cell(1)];
    let guard: Guard = "slow/base < 0.9".parse().expect("it is well formed");
    PlatformBench {
        schema: "untax.bench.made-up/1".to_owned(),
        run: "a-run".to_owned(),
        taken_at: jiff::Timestamp::UNIX_EPOCH,
        in_cluster: false,
        cpu_model: "a processor".to_owned(),
        kernel_release: "6.18".to_owned(),
        idle: "driver haltpoll".to_owned(),
        seed: 7,
        budget_s: 30.0,
        spent_s: 24.0,
        beside: Vec::new(),
        baseline: "base".to_owned(),
        arms: [&plan.arms[..], &[Arm::new("absent", "made up").cannot("no such program")]].concat(),
        warnings: warnings::of(&cells, super::schema::AaCount::default()),
        guards: guard.judge(&tally),
        lines: Vec::new(),
        cells,
        aa: super::schema::AaCount { differ: 0, cells: 1 },
        complete: true,
    }
}
