//! Going through cells and blocks until the time is spent.

use super::arm::{AGAIN, Arm};
use super::budget::{self, MOST_BLOCKS, Standing};
use super::cell::Cell;
use super::error::{PlatformError, Trouble};
use super::family::{Family, Running};
use super::machine::Sample;
use super::measured::Measured;
use super::order;
use super::results::Tally;
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use untax_host::Host;
use untax_trials::{self as trials, Design, Interrupt, Rig, Runner, Saved, Slot, Trial, Watch};

/// Failures after which an arm is left out of a cell: the first may be a port that somebody took.
const MOST_FAILURES: usize = 2;

/// What is measured, decided before.
pub(crate) struct Plan {
    /// The arms that run, the baseline first.
    pub(crate) arms: Vec<Arm>,
    /// The cells that can be measured, the most telling first.
    pub(crate) cells: Vec<Cell>,
    pub(crate) seed: u64,
    pub(crate) budget: Duration,
    /// Blocks of a cell at most.
    pub(crate) most_blocks: Option<u32>,
    /// CPUs that other programs may use beside a trial.
    pub(crate) most_others: Option<f64>,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) trials: Vec<Trial<Measured>>,
    /// Why arms failed, by cell and arm.
    pub(crate) failures: BTreeMap<(usize, usize), Vec<String>>,
    pub(crate) was_interrupted: bool,
}

/// Hears how it goes.
pub(crate) trait Audience {
    /// Something went on.
    fn progress(&mut self, progress: &Progress);
    /// A block is done.
    fn block(&mut self, outcome: &Outcome);
}

impl Plan {
    pub(crate) fn design(&self) -> Design {
        let watch = Watch { most_others: self.most_others, ..Watch::default() };
        let arm = |arm: &Arm| trials::Arm {
            name: arm.id.clone(),
            configuration: arm.configuration_line(),
            restart: true,
            preparing: Duration::ZERO,
            watch: watch.clone(),
        };
        let again = self
            .arms
            .first()
            .map(|baseline| trials::Arm { name: AGAIN.to_owned(), ..arm(baseline) });
        let cell = |cell: &Cell| trials::Cell { name: cell.name(), length: None };
        Design {
            seed: self.seed,
            arms: self.arms.iter().map(arm).chain(again).collect(),
            cells: self.cells.iter().map(cell).collect(),
            blocks: Vec::new(),
        }
    }

    fn most_blocks(&self) -> u32 {
        self.most_blocks.unwrap_or(MOST_BLOCKS)
    }
}

/// Measures until the time is spent or all is decided; an interrupted run keeps what it has. Trials are saved
/// one by one at `path`, and those that are there already are not made again.
pub(crate) fn run(
    plan: &Plan,
    family: &mut dyn Family,
    interrupt: &Interrupt,
    path: &Path,
    audience: &mut dyn Audience,
) -> Result<Outcome, PlatformError> {
    let mut design = plan.design();
    let (saved, earlier) = Saved::open::<Measured>(path, &design)?;
    let mut outcome = Outcome { trials: earlier, ..Outcome::default() };
    let (host, begun) = (Host::live(), Instant::now());
    let mut took: Vec<Vec<Duration>> = vec![Vec::new(); plan.cells.len()];
    loop {
        let left = plan.budget.saturating_sub(begun.elapsed());
        let standings = standings(plan, &outcome, &took);
        let Some(cell) = budget::next(&standings, left, plan.most_blocks()) else { break };
        let number = next_block(plan, &outcome, cell);
        design.blocks = vec![order::block(plan.seed, cell, number, &arms(plan, &outcome, cell))];
        let mut rig = Bed {
            plan,
            family: &mut *family,
            host: &host,
            interrupt,
            cell,
            running: None,
            failures: &mut outcome.failures,
        };
        let mut screen = Screen {
            saved: &saved,
            audience: &mut *audience,
            trials: Vec::new(),
            position: position(&standings, left, plan.most_blocks()),
        };
        let since = Instant::now();
        let earlier = std::mem::take(&mut outcome.trials);
        screen.trials.clone_from(&earlier);
        let ran = Runner::new(&design, interrupt, &host).run(&mut rig, earlier, &mut screen);
        outcome.trials = screen.trials;
        took[cell].push(since.elapsed());
        match ran {
            Ok(_) => audience.block(&outcome),
            Err(PlatformError::Interrupted(_)) => {
                outcome.was_interrupted = true;
                return Ok(outcome);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outcome)
}

/// How each cell stands.
fn standings(plan: &Plan, outcome: &Outcome, took: &[Vec<Duration>]) -> Vec<Standing> {
    let tally = outcome.tally(plan);
    let standing = |(place, cell): (usize, &Cell)| {
        let expected = (cell.workload.trial + cell.workload.start) * (plan.arms.len() + 1) as u32;
        let made = &took[place];
        let mean = made.iter().sum::<Duration>().checked_div(made.len() as u32);
        let is_lost = is_out(outcome, place, 0) || is_out(outcome, place, plan.arms.len());
        Standing {
            blocks: next_block(plan, outcome, place),
            block: mean.unwrap_or(expected),
            widest: if is_lost { None } else { tally.widest(place) },
            is_lost,
        }
    };
    plan.cells.iter().enumerate().map(standing).collect()
}

/// The number of the first block that an earlier or this run has not done.
fn next_block(plan: &Plan, outcome: &Outcome, cell: usize) -> u32 {
    let arms = arms(plan, outcome, cell);
    let is_done = |number: u32| {
        arms.iter().all(|arm| {
            let mut trials = outcome.trials.iter();
            trials.any(|t| t.slot == Slot { block: number, arm: *arm, cell, repeat: false })
                || outcome.failures.contains_key(&(cell, *arm))
        })
    };
    let blocks = outcome.tally(plan).blocks(cell);
    (0..blocks).find(|number| !is_done(*number)).unwrap_or(blocks)
}

/// The arms that a cell is measured with: without those that failed there.
fn arms(plan: &Plan, outcome: &Outcome, cell: usize) -> Vec<usize> {
    (0..=plan.arms.len()).filter(|arm| !is_out(outcome, cell, *arm)).collect()
}

fn is_out(outcome: &Outcome, cell: usize, arm: usize) -> bool {
    outcome.failures.get(&(cell, arm)).is_some_and(|all| all.len() >= MOST_FAILURES)
}

impl Outcome {
    pub(crate) fn tally<'a>(&'a self, plan: &'a Plan) -> Tally<'a> {
        let Plan { arms, cells, .. } = plan;
        Tally { arms, cells, failures: &self.failures, trials: &self.trials }
    }
}

/// Blocks done and blocks that verdicts need at least, and the time left.
fn position(standings: &[Standing], left: Duration, most_blocks: u32) -> (u32, u32, Duration) {
    let open = standings.iter().filter(|standing| !standing.is_lost);
    let done: u32 = open.clone().map(|standing| standing.blocks).sum();
    let enough = untax_core::verdict::LEAST_PAIRS.min(most_blocks);
    let least = open.clone().map(|standing| standing.blocks.max(enough)).sum();
    let all = open.map(|standing| standing.block * most_blocks.saturating_sub(standing.blocks));
    (done, least, left.min(all.sum()))
}

/// A family as the runner sees it, for one cell.
struct Bed<'a> {
    plan: &'a Plan,
    family: &'a mut dyn Family,
    host: &'a Host,
    interrupt: &'a Interrupt,
    cell: usize,
    running: Option<Box<dyn Running>>,
    failures: &'a mut BTreeMap<(usize, usize), Vec<String>>,
}

impl Bed<'_> {
    fn fail(&mut self, arm: usize, trouble: Trouble) -> Result<(), PlatformError> {
        self.running = None;
        match trouble {
            Trouble::Interrupted(interrupted) => Err(interrupted.into()),
            Trouble::Failed(why) => {
                // A program that a signal to this one ended as well has not failed.
                self.interrupt.check()?;
                self.failures.entry((self.cell, arm)).or_default().push(why);
                Ok(())
            }
        }
    }
}

impl Rig for Bed<'_> {
    type Error = PlatformError;
    type Outcome = Measured;

    fn prepare(
        &mut self,
        arms: &[usize],
        tell: &mut dyn FnMut(&str, f64),
    ) -> Result<(), PlatformError> {
        self.running = None;
        let [place] = arms else { return Ok(()) };
        let arm = &self.plan.arms[if *place == self.plan.arms.len() { 0 } else { *place }];
        let cell = &self.plan.cells[self.cell];
        tell(&format!("{}: starting {}", cell.name(), arm.id), 0.0);
        match self.family.start(arm, cell, self.interrupt) {
            Ok(running) => self.running = Some(running),
            Err(trouble) => self.fail(*place, trouble)?,
        }
        Ok(())
    }

    fn run(&mut self, slot: &Slot) -> Result<Option<Measured>, PlatformError> {
        let Some(running) = &mut self.running else { return Ok(None) };
        let groups = running.groups();
        let before = Sample::read(self.host, &groups);
        match running.trial(self.interrupt) {
            Ok(measured) if measured.value.is_finite() && measured.value > 0.0 => {
                Ok(Some(before.describe(&Sample::read(self.host, &groups), measured)))
            }
            Ok(measured) => {
                let why = format!("a trial gave {}, which is no rate", measured.value);
                self.fail(slot.arm, Trouble::Failed(why)).map(|()| None)
            }
            Err(trouble) => self.fail(slot.arm, trouble).map(|()| None),
        }
    }

    fn tear_down(&mut self) -> Result<(), PlatformError> {
        self.running = None;
        Ok(())
    }
}

/// Saves each trial, and tells how far the run is.
struct Screen<'a> {
    saved: &'a Saved,
    audience: &'a mut dyn Audience,
    trials: Vec<Trial<Measured>>,
    position: (u32, u32, Duration),
}

impl trials::Observer<Measured, PlatformError> for Screen<'_> {
    fn progress(&mut self, progress: &Progress) {
        let (done, total, left) = self.position;
        let doing = progress.doing.clone();
        self.audience.progress(&Progress { done, total, doing, left });
    }

    fn trial(&mut self, trials: &[Trial<Measured>]) -> Result<(), PlatformError> {
        self.trials = trials.to_vec();
        self.saved.save(trials)?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
