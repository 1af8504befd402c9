//! Going through the order of a design.

use crate::clock::Clock;
use crate::guards::Readings;
use crate::{Block, Design, Interrupt, Interrupted, Slot, Watch};
use serde::{Deserialize, Serialize};
use std::slice;
use std::time::{Duration, Instant};
use untax_core::guards::Guard;
use untax_core::sleeps::Sleeps;
use untax_host::Host;

/// What the arms share: one host with and without a plan, one server, tables in memory.
pub trait Rig {
    /// Why something failed.
    type Error: From<Interrupted>;

    /// What a trial gives.
    type Outcome;

    /// Brings the rig from whatever state it is in to one where these arms can be measured: one arm, or all
    /// that are measured by turns. `tell` hears what is being done and which share of it is done.
    fn prepare(
        &mut self,
        arms: &[usize],
        tell: &mut dyn FnMut(&str, f64),
    ) -> Result<(), Self::Error>;

    /// One trial of a prepared arm; `None` where there is nothing to measure.
    fn run(&mut self, slot: &Slot) -> Result<Option<Self::Outcome>, Self::Error>;

    /// Puts back whatever `prepare` did. Called once behind each run of `prepare`s, also when one of them
    /// or a trial failed or was interrupted.
    fn tear_down(&mut self) -> Result<(), Self::Error>;
}

/// One trial that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial<T> {
    /// Its place in the order.
    #[serde(flatten)]
    pub slot: Slot,
    /// What it gave.
    pub outcome: T,
    /// How long it took.
    pub took_s: f64,
    /// What was watched beside it.
    pub guards: Vec<Guard>,
    /// How idle CPUs slept beside it; trials of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleeps: Option<Sleeps>,
}

impl<T> Trial<T> {
    /// The guards that were exceeded.
    pub fn spoiled(&self) -> impl Iterator<Item = &Guard> {
        self.guards.iter().filter(|guard| guard.is_exceeded())
    }

    /// Whether a verdict may use it.
    pub fn counts(&self) -> bool {
        self.spoiled().next().is_none()
    }
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Trials done.
    pub done: u32,
    /// All trials.
    pub total: u32,
    /// What is being done, for a person.
    pub doing: String,
    /// Time left, as far as it can be told.
    pub left: Duration,
}

/// Hears of each step of a run; saves trials; may end it early.
pub trait Observer<T, E> {
    /// Something went on; called often.
    fn progress(&mut self, _: &Progress) {}

    /// A trial was made: the last of all that there are, to be shown and saved.
    fn trial(&mut self, trials: &[Trial<T>]) -> Result<(), E>;

    /// Whether the trials so far are enough; asked before each block.
    fn is_decided(&mut self, _: &[Trial<T>]) -> bool {
        false
    }
}

/// Trials of one slot: a spoiled one is made once more, at once, while its arm is prepared.
const TRIES: usize = 2;

/// What trials whose length nobody knows count for the time left, before the first one is done.
const UNKNOWN: Duration = Duration::from_secs(10);

/// Goes through the order of a design.
pub struct Runner<'a> {
    design: &'a Design,
    budget: Option<Duration>,
    interrupt: &'a Interrupt,
    /// Reads what is watched beside a trial of this arm.
    read: Box<dyn Fn(&Watch) -> Readings + 'a>,
}

impl<'a> Runner<'a> {
    /// A runner without a budget of time.
    pub fn new(design: &'a Design, interrupt: &'a Interrupt, host: &'a Host) -> Self {
        let since = Instant::now();
        let read = Box::new(move |watch: &Watch| Readings::read(host, watch, since));
        Self { design, budget: None, interrupt, read }
    }

    /// The same, which begins no new block after this time.
    #[must_use]
    pub fn within(self, budget: Duration) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Makes all trials that `earlier` ones of the same design are not, in order, until the budget is spent
    /// or the observer has enough. Gives all of them, the earlier ones first. A rig that could not be torn
    /// down is the error, whatever else failed.
    pub fn run<R: Rig>(
        &self,
        rig: &mut R,
        earlier: Vec<Trial<R::Outcome>>,
        observer: &mut dyn Observer<R::Outcome, R::Error>,
    ) -> Result<Vec<Trial<R::Outcome>>, R::Error> {
        let mut going = Going::new(self, rig, earlier, observer);
        let made = going.all();
        going.tear_down()?;
        made.map(|()| going.trials)
    }
}

/// A run that is going on.
struct Going<'a, R: Rig> {
    runner: &'a Runner<'a>,
    rig: &'a mut R,
    observer: &'a mut dyn Observer<R::Outcome, R::Error>,
    trials: Vec<Trial<R::Outcome>>,
    /// The arms that are prepared, and the block that they were prepared in; `None` when the rig is as it
    /// was found.
    prepared: Option<(Vec<usize>, u32)>,
    clock: Clock,
    /// Slots that are done or will not be.
    passed: u32,
}

impl<'a, R: Rig> Going<'a, R> {
    fn new(
        runner: &'a Runner<'a>,
        rig: &'a mut R,
        trials: Vec<Trial<R::Outcome>>,
        observer: &'a mut dyn Observer<R::Outcome, R::Error>,
    ) -> Self {
        let clock = Clock::new(Duration::ZERO, Duration::ZERO);
        let mut going = Self { runner, rig, observer, trials, prepared: None, clock, passed: 0 };
        going.clock = going.expected();
        going
    }

    /// A clock for all that is left to do.
    fn expected(&self) -> Clock {
        let (mut preparing, mut trials) = (Duration::ZERO, Duration::ZERO);
        let mut prepared = None;
        for block in &self.runner.design.blocks {
            for slot in block.slots.iter().filter(|slot| !self.is_done(slot)) {
                let arms = needed(block, slot);
                if self.is_to_prepare(prepared.as_ref(), arms, slot) {
                    preparing += self.preparing(prepared.as_ref(), arms, slot);
                    prepared = Some((arms.to_vec(), slot.block));
                }
                trials += self.length(slot);
            }
        }
        Clock::new(preparing, trials)
    }

    /// Whether these arms are to be prepared for a slot, when those others are.
    fn is_to_prepare(&self, now: Option<&(Vec<usize>, u32)>, arms: &[usize], slot: &Slot) -> bool {
        now.is_none_or(|(prepared, _)| prepared != arms) || self.is_to_restart(now, arms, slot)
    }

    fn is_to_restart(&self, now: Option<&(Vec<usize>, u32)>, arms: &[usize], slot: &Slot) -> bool {
        let asks = || arms.iter().any(|arm| self.runner.design.arms[*arm].restart);
        now.is_some_and(|(_, block)| *block != slot.block) && asks()
    }

    /// How long that is expected to take.
    fn preparing(&self, now: Option<&(Vec<usize>, u32)>, arms: &[usize], slot: &Slot) -> Duration {
        let again = self.is_to_restart(now, arms, slot);
        let stays = |arm: &usize| !again && now.is_some_and(|(prepared, _)| prepared.contains(arm));
        let each = arms.iter().filter(|arm| !stays(arm));
        each.map(|arm| self.runner.design.arms[*arm].preparing).sum()
    }

    fn length(&self, slot: &Slot) -> Duration {
        self.runner.design.cells[slot.cell].length.unwrap_or(UNKNOWN)
    }

    fn of<'b>(&'b self, slot: &'b Slot) -> impl Iterator<Item = &'b Trial<R::Outcome>> {
        self.trials.iter().filter(move |trial| trial.slot == *slot)
    }

    /// Whether nothing is left to do for a slot: one trial counts, or two are spoiled.
    fn is_done(&self, slot: &Slot) -> bool {
        self.of(slot).any(Trial::counts) || self.of(slot).count() >= TRIES
    }

    fn all(&mut self) -> Result<(), R::Error> {
        let begun = Instant::now();
        let is_spent = |budget: Duration| begun.elapsed() >= budget;
        for block in &self.runner.design.blocks {
            // One that was begun before a kill is ended as if there had been none.
            let is_begun = block.slots.iter().any(|slot| self.of(slot).next().is_some());
            if !is_begun
                && (self.runner.budget.is_some_and(is_spent)
                    || self.observer.is_decided(&self.trials))
            {
                break;
            }
            for slot in &block.slots {
                while !self.is_done(slot) {
                    self.runner.interrupt.check()?;
                    self.prepare(block, slot)?;
                    self.runner.interrupt.check()?;
                    if !self.trial(slot)? || self.runner.budget.is_some_and(is_spent) {
                        break;
                    }
                }
                self.passed += 1;
            }
        }
        Ok(())
    }

    /// Prepares what a slot needs, unless that is so already.
    fn prepare(&mut self, block: &Block, slot: &Slot) -> Result<(), R::Error> {
        let arms = needed(block, slot);
        if !self.is_to_prepare(self.prepared.as_ref(), arms, slot) {
            return Ok(());
        }
        let expected = self.preparing(self.prepared.as_ref(), arms, slot);
        if self.is_to_restart(self.prepared.as_ref(), arms, slot) {
            self.tear_down()?;
        }
        // Before it is: what fails half way is to be torn down too.
        self.prepared = Some((arms.to_vec(), slot.block));
        let begun = Instant::now();
        let (done, total) = (self.passed, self.total());
        let (clock, observer) = (&self.clock, &mut *self.observer);
        let tell = &mut |doing: &str, share: f64| {
            let done_of_it = expected.mul_f64(share.clamp(0.0, 1.0));
            let left = clock.left_while_preparing(done_of_it, begun.elapsed());
            observer.progress(&Progress { done, total, doing: doing.to_owned(), left });
        };
        self.rig.prepare(arms, tell)?;
        self.clock.prepared(expected, begun.elapsed());
        Ok(())
    }

    /// Makes one trial. Gives whether there was something to measure.
    fn trial(&mut self, slot: &Slot) -> Result<bool, R::Error> {
        let design = self.runner.design;
        let (arm, cell) = (&design.arms[slot.arm], &design.cells[slot.cell]);
        let doing = [arm.name.as_str(), cell.name.as_str()];
        let doing: Vec<&str> = doing.into_iter().filter(|name| !name.is_empty()).collect();
        self.observer.progress(&Progress {
            done: self.passed,
            total: self.total(),
            doing: doing.join(", "),
            left: self.clock.left(),
        });
        let is_first = self.of(slot).next().is_none();
        let expected = if is_first { self.length(slot) } else { Duration::ZERO };
        let before = (self.runner.read)(&arm.watch);
        let Some(outcome) = self.rig.run(slot)? else {
            self.clock.skipped(expected);
            return Ok(false);
        };
        let after = (self.runner.read)(&arm.watch);
        let took = before.until(&after);
        let guards = before.guards(&after, &arm.watch, cell.length);
        if is_first {
            self.clock.tried(expected, took);
        }
        let (took_s, sleeps) = (took.as_secs_f64(), Some(before.sleeps(&after)));
        self.trials.push(Trial { slot: *slot, outcome, took_s, guards, sleeps });
        self.observer.trial(&self.trials)?;
        Ok(true)
    }

    fn total(&self) -> u32 {
        self.runner.design.blocks.iter().map(|block| block.slots.len() as u32).sum()
    }

    fn tear_down(&mut self) -> Result<(), R::Error> {
        self.prepared.take().map_or(Ok(()), |_| self.rig.tear_down())
    }
}

/// The arms that are to be prepared for a trial.
fn needed<'b>(block: &'b Block, slot: &'b Slot) -> &'b [usize] {
    if block.together.is_empty() { slice::from_ref(&slot.arm) } else { &block.together }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
