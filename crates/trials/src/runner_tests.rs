//! Tests of the runner, on rigs that are made up.

use super::*;
use crate::{Arm, Cell, is_unanimous, judged};
use proptest::prelude::*;
use std::cell::Cell as Shared;
use std::collections::{BTreeMap, BTreeSet};
use untax_core::verdict::{Word, judge};
use untax_host::Record;

#[derive(Debug, PartialEq)]
enum Failure {
    Prepare,
    Run,
    TearDown,
    Save,
    Interrupted,
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// What a rig was told to do.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Prepare(Vec<usize>),
    Run(Slot),
    TearDown,
}

/// A rig that keeps what it was told, and may fail at one step.
struct Fake<'a> {
    steps: Vec<Step>,
    /// The step that fails, by number.
    fails: Option<usize>,
    /// The step that raises the interrupt.
    interrupts: Option<usize>,
    interrupt: &'a Interrupt,
    /// Of the tries of a slot, those that are spoiled, by its number in the order of slots.
    spoils: BTreeMap<Slot, usize>,
    /// How far the wall clock was set.
    jumped_s: &'a Shared<f64>,
    sleeps: Duration,
}

/// A rate that no trial of a [`Fake`] has.
const ABSURD: f64 = 1e9;

impl<'a> Fake<'a> {
    fn new(interrupt: &'a Interrupt, jumped_s: &'a Shared<f64>) -> Self {
        Self {
            steps: Vec::new(),
            fails: None,
            interrupts: None,
            interrupt,
            spoils: BTreeMap::new(),
            jumped_s,
            sleeps: Duration::ZERO,
        }
    }

    fn step(&mut self, step: Step, failure: Failure) -> Result<(), Failure> {
        let number = self.steps.len();
        self.steps.push(step);
        if self.interrupts == Some(number) {
            self.interrupt.raise();
        }
        if self.fails == Some(number) { Err(failure) } else { Ok(()) }
    }

    fn slots(&self) -> Vec<Slot> {
        let slot = |step: &Step| if let Step::Run(slot) = step { Some(*slot) } else { None };
        self.steps.iter().filter_map(slot).collect()
    }

    /// Whether each run of prepares is followed by one tear down, and trials are of prepared arms alone.
    fn is_paired(&self) -> bool {
        let mut prepared: Option<&[usize]> = None;
        for step in &self.steps {
            match step {
                Step::Prepare(arms) => prepared = Some(arms),
                Step::Run(slot) if prepared.is_some_and(|arms| arms.contains(&slot.arm)) => {}
                Step::TearDown if prepared.is_some() => prepared = None,
                _ => return false,
            }
        }
        prepared.is_none()
    }
}

impl Rig for Fake<'_> {
    type Error = Failure;
    type Outcome = f64;

    fn prepare(&mut self, arms: &[usize], tell: &mut dyn FnMut(&str, f64)) -> Result<(), Failure> {
        tell("filling", 0.5);
        self.step(Step::Prepare(arms.to_vec()), Failure::Prepare)
    }

    fn run(&mut self, slot: &Slot) -> Result<Option<f64>, Failure> {
        self.step(Step::Run(*slot), Failure::Run)?;
        std::thread::sleep(self.sleeps);
        if let Some(left) = self.spoils.get_mut(slot).filter(|left| **left > 0) {
            *left -= 1;
            self.jumped_s.set(self.jumped_s.get() + 60.0);
            return Ok(Some(ABSURD));
        }
        Ok(Some(100.0 + slot.arm as f64 + f64::from(slot.block) / 100.0))
    }

    fn tear_down(&mut self) -> Result<(), Failure> {
        self.step(Step::TearDown, Failure::TearDown)
    }
}

/// Keeps what was saved last, and what was told.
#[derive(Default)]
struct Kept {
    saved: Vec<Trial<f64>>,
    told: Vec<Progress>,
    /// Fails to save so many trials.
    fails_at: Option<usize>,
    decided_at: Option<usize>,
}

impl Observer<f64, Failure> for Kept {
    fn progress(&mut self, progress: &Progress) {
        self.told.push(progress.clone());
    }

    fn trial(&mut self, trials: &[Trial<f64>]) -> Result<(), Failure> {
        if self.fails_at == Some(trials.len()) {
            return Err(Failure::Save);
        }
        self.saved = trials.to_vec();
        Ok(())
    }

    fn is_decided(&mut self, trials: &[Trial<f64>]) -> bool {
        self.decided_at.is_some_and(|at| trials.len() >= at)
    }
}

/// A runner on a host of which nothing can be read, with a wall clock that jumps.
fn runner<'a>(
    design: &'a Design,
    interrupt: &'a Interrupt,
    jumped_s: &'a Shared<f64>,
) -> Runner<'a> {
    let host = Host::from_record(Record::default());
    let since = Instant::now();
    let read = move |watch: &Watch| {
        let monotonic = since.elapsed();
        let wall = monotonic + Duration::from_secs_f64(jumped_s.get());
        Readings::at(&host, watch, monotonic, wall)
    };
    Runner { design, budget: None, interrupt, read: Box::new(read) }
}

fn designs() -> impl Strategy<Value = Design> {
    let sizes = (1_usize..5, 1_usize..4, 1_u32..7, any::<u64>());
    (sizes, prop::bool::ANY, prop::collection::vec(prop::bool::ANY, 4)).prop_map(
        |((arms, cells, blocks, seed), together, restarts)| {
            let arm = |arm: usize| Arm {
                restart: restarts[arm],
                preparing: Duration::from_secs(1),
                ..Arm::new(arm.to_string())
            };
            let cell = |cell: usize| Cell { name: cell.to_string(), length: None };
            let (arms, cells) = ((0..arms).map(arm).collect(), (0..cells).map(cell).collect());
            let mut design = Design::of_visits(seed, arms, cells, blocks);
            if together {
                let all: Vec<usize> = (0..design.arms.len()).collect();
                for block in &mut design.blocks {
                    block.together.clone_from(&all);
                }
            }
            design
        },
    )
}

/// Which tries of which slots are spoiled.
fn spoils(design: &Design, seed: u64) -> BTreeMap<Slot, usize> {
    let mut rng = fastrand::Rng::with_seed(seed);
    design.slots().map(|slot| (*slot, rng.usize(0..8).saturating_sub(5))).collect()
}

/// What of trials does not depend on the moment.
fn essence(trials: &[Trial<f64>]) -> Vec<(Slot, f64, bool)> {
    trials.iter().map(|trial| (trial.slot, trial.outcome, trial.counts())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_trial_is_made_in_order_and_spoiled_ones_once_more(
        (design, seed) in (designs(), any::<u64>())
    ) {
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let mut rig = Fake { spoils: spoils(&design, seed), ..Fake::new(&interrupt, &jumped_s) };
        let mut kept = Kept::default();
        let made = runner(&design, &interrupt, &jumped_s).run(&mut rig, Vec::new(), &mut kept).unwrap();
        prop_assert!(rig.is_paired());
        prop_assert_eq!(&made, &kept.saved);
        let mut slots = rig.slots();
        slots.dedup();
        prop_assert_eq!(&slots, &design.slots().copied().collect::<Vec<_>>());
        for slot in &slots {
            let tries: Vec<_> = made.iter().filter(|trial| trial.slot == *slot).collect();
            let spoiled = spoils(&design, seed)[slot];
            prop_assert_eq!(tries.len(), if spoiled == 0 { 1 } else { 2 });
            prop_assert_eq!(tries[0].counts(), spoiled == 0);
            prop_assert_eq!(tries.iter().any(|trial| trial.counts()), spoiled < 2);
        }
        let total = design.slots().count() as u32;
        prop_assert!(kept.told.iter().all(|told| told.total == total && told.done < total));
        prop_assert!(kept.told.windows(2).all(|two| two[0].done <= two[1].done));
    }

    #[test]
    fn an_arm_is_prepared_when_it_changes_and_in_each_block_where_it_asks(design in designs()) {
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let mut rig = Fake::new(&interrupt, &jumped_s);
        runner(&design, &interrupt, &jumped_s)
            .run(&mut rig, Vec::new(), &mut Kept::default())
            .unwrap();
        let mut before: Option<(Vec<usize>, u32)> = None;
        let mut expected = 0;
        for (block, slot) in
            design.blocks.iter().flat_map(|block| block.slots.iter().map(move |slot| (block, slot)))
        {
            let arms =
                if block.together.is_empty() { vec![slot.arm] } else { block.together.clone() };
            let asks = arms.iter().any(|arm| design.arms[*arm].restart);
            let stays = before
                .as_ref()
                .is_some_and(|(known, at)| *known == arms && (*at == slot.block || !asks));
            if !stays {
                expected += 1;
                before = Some((arms, slot.block));
            }
        }
        let prepares = rig.steps.iter().filter(|step| matches!(step, Step::Prepare(_))).count();
        prop_assert_eq!(prepares, expected);
    }

    #[test]
    fn a_run_that_was_killed_at_any_trial_ends_with_the_trials_of_one_that_was_not(
        (design, seed, cut) in (designs(), any::<u64>(), any::<prop::sample::Index>())
    ) {
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let rig = || Fake { spoils: spoils(&design, seed), ..Fake::new(&interrupt, &jumped_s) };
        let runner = runner(&design, &interrupt, &jumped_s);
        let whole = runner.run(&mut rig(), Vec::new(), &mut Kept::default()).unwrap();
        let earlier = whole[..cut.index(whole.len() + 1)].to_vec();
        let mut again = rig();
        for trial in earlier.iter().filter(|trial| !trial.counts()) {
            *again.spoils.get_mut(&trial.slot).unwrap() -= 1;
        }
        let resumed = runner.run(&mut again, earlier.clone(), &mut Kept::default()).unwrap();
        prop_assert_eq!(essence(&resumed), essence(&whole));
        prop_assert_eq!(again.slots().len(), whole.len() - earlier.len());
        prop_assert!(again.is_paired());
    }

    #[test]
    fn what_was_prepared_is_torn_down_whatever_fails(
        (design, step, is_interrupt) in (designs(), 0_usize..60, prop::bool::ANY)
    ) {
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let mut whole = Fake::new(&interrupt, &jumped_s);
        runner(&design, &interrupt, &jumped_s)
            .run(&mut whole, Vec::new(), &mut Kept::default())
            .unwrap();
        let mut rig = Fake::new(&interrupt, &jumped_s);
        let place = if is_interrupt { &mut rig.interrupts } else { &mut rig.fails };
        *place = Some(step);
        let mut kept = Kept::default();
        let made = runner(&design, &interrupt, &jumped_s).run(&mut rig, Vec::new(), &mut kept);
        prop_assert!(rig.is_paired(), "{:?}", rig.steps);
        let failure = made.err();
        if is_interrupt {
            let last = whole.steps.iter().rposition(|step| matches!(step, Step::Run(_)));
            let is_heard = last.is_some_and(|last| step < last);
            prop_assert_eq!(failure, is_heard.then_some(Failure::Interrupted));
            prop_assert_eq!(rig.slots().len(), kept.saved.len(), "no trial is lost");
        } else {
            let expected = whole.steps.get(step).map(|step| match step {
                Step::Prepare(_) => Failure::Prepare,
                Step::Run(_) => Failure::Run,
                Step::TearDown => Failure::TearDown,
            });
            prop_assert_eq!(failure, expected);
        }
    }

    #[test]
    fn trials_that_cannot_be_saved_end_the_run(design in designs()) {
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let mut rig = Fake::new(&interrupt, &jumped_s);
        let mut kept = Kept { fails_at: Some(1), ..Kept::default() };
        let made = runner(&design, &interrupt, &jumped_s).run(&mut rig, Vec::new(), &mut kept);
        prop_assert_eq!(made.err(), Some(Failure::Save));
        prop_assert!(rig.is_paired() && rig.slots().len() == 1);
    }

    #[test]
    fn a_decided_run_begins_no_other_block((design, at) in (designs(), 0_usize..40)) {
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let mut rig = Fake::new(&interrupt, &jumped_s);
        let mut kept = Kept { decided_at: Some(at), ..Kept::default() };
        let made = runner(&design, &interrupt, &jumped_s).run(&mut rig, Vec::new(), &mut kept);
        let each = design.arms.len() * design.cells.len();
        let blocks = at.div_ceil(each).min(design.blocks.len());
        prop_assert_eq!(made.unwrap().len(), blocks * each);
    }

    #[test]
    fn a_budget_is_exceeded_by_one_block_at_most((design, budget_ms) in (designs(), 0_u64..20)) {
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let sleeps = Duration::from_millis(1);
        let mut rig = Fake { sleeps, ..Fake::new(&interrupt, &jumped_s) };
        let budget = Duration::from_millis(budget_ms);
        let runner = runner(&design, &interrupt, &jumped_s).within(budget);
        let made = runner.run(&mut rig, Vec::new(), &mut Kept::default()).unwrap();
        let mut took = Duration::ZERO;
        let late: BTreeSet<u32> = made
            .iter()
            .filter(|trial| {
                let is_late = took >= budget;
                took += Duration::from_secs_f64(trial.took_s);
                is_late
            })
            .map(|trial| trial.slot.block)
            .collect();
        prop_assert!(late.len() <= 1, "{:?}", late);
        let each = design.arms.len() * design.cells.len();
        prop_assert_eq!(made.len() % each, 0, "a block that is begun is ended");
    }

    #[test]
    fn spoiled_trials_never_enter_a_verdict((blocks, seed) in (1_u32..12, any::<u64>())) {
        let arms = vec![Arm::new("without"), Arm::new("with")];
        let design = Design::of_visits(seed, arms, vec![Cell::default()], blocks);
        let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
        let runner = runner(&design, &interrupt, &jumped_s);
        let mut rig = Fake { spoils: spoils(&design, seed), ..Fake::new(&interrupt, &jumped_s) };
        let made = runner.run(&mut rig, Vec::new(), &mut Kept::default()).unwrap();
        let counting: Vec<Trial<f64>> = made.iter().filter(|trial| trial.counts()).cloned().collect();
        let rates = |trials: &[Trial<f64>]| judged(trials, 1, |rate| *rate);
        prop_assert_eq!(judge(&rates(&made)), judge(&rates(&counting)));
        prop_assert_eq!(is_unanimous(&rates(&made)), is_unanimous(&rates(&counting)));
        let word = judge(&rates(&made));
        prop_assert!(word.is_none_or(|verdict| verdict.measured.high < 2.0), "{:?}", word);
    }
}

#[test]
fn the_time_left_shrinks_with_each_trial_and_is_none_of_what_is_done() {
    let cell = Cell { name: "load".to_owned(), length: Some(Duration::from_secs(10)) };
    let arm = |name: &str| Arm { preparing: Duration::from_secs(3), ..Arm::new(name) };
    let design = Design::of_visits(1, vec![arm("a"), arm("b")], vec![cell], 2);
    let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
    let mut kept = Kept::default();
    let mut rig = Fake::new(&interrupt, &jumped_s);
    runner(&design, &interrupt, &jumped_s).run(&mut rig, Vec::new(), &mut kept).unwrap();
    // A B | B A: three prepares and four trials. They took no time here, so what is left is little.
    let first = &kept.told[0];
    assert!(first.doing == "filling" && first.left > Duration::from_secs(38), "{first:?}");
    let left: Vec<Duration> = kept.told.iter().map(|told| told.left).collect();
    assert!(left.windows(2).all(|two| two[0] >= two[1]), "{left:?}");
    assert!(left.last().unwrap() < &Duration::from_secs(1), "{left:?}");
    assert_eq!(
        kept.told.last().unwrap().doing,
        if design.blocks[1].slots[1].arm == 0 { "a, load" } else { "b, load" }
    );
}

/// A host where a change has some effect, and every trial some noise.
struct Noisy {
    rng: fastrand::Rng,
    effect: f64,
    noise: f64,
}

impl Rig for Noisy {
    type Error = Failure;
    type Outcome = f64;

    fn prepare(&mut self, _: &[usize], _: &mut dyn FnMut(&str, f64)) -> Result<(), Failure> {
        Ok(())
    }

    fn run(&mut self, slot: &Slot) -> Result<Option<f64>, Failure> {
        let normal = (0..12).map(|_| self.rng.f64()).sum::<f64>() - 6.0;
        let effect = if slot.arm == 1 { self.effect } else { 1.0 };
        Ok(Some(1000.0 * effect * (normal * self.noise).exp()))
    }

    fn tear_down(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Ends as `verify` does.
struct Sequential;

impl Observer<f64, Failure> for Sequential {
    fn trial(&mut self, _: &[Trial<f64>]) -> Result<(), Failure> {
        Ok(())
    }

    fn is_decided(&mut self, trials: &[Trial<f64>]) -> bool {
        is_unanimous(&judged(trials, 1, |rate| *rate))
    }
}

/// How many of 200 verifications ended with each word, and pairs they took on average.
fn words(effect: f64, noise: f64, pairs: u32) -> ([usize; 3], f64) {
    let (mut counts, mut taken) = ([0; 3], 0);
    let (interrupt, jumped_s) = (Interrupt::default(), Shared::new(0.0));
    for seed in 0..200 {
        let arms = vec![Arm::new("without"), Arm::new("with")];
        let design = Design::of_visits(seed, arms, vec![Cell::default()], pairs);
        let mut rig = Noisy { rng: fastrand::Rng::with_seed(seed), effect, noise };
        let runner = runner(&design, &interrupt, &jumped_s);
        let trials = runner.run(&mut rig, Vec::new(), &mut Sequential).unwrap();
        let trials = judged(&trials, 1, |rate| *rate);
        counts[judge(&trials).unwrap().word as usize] += 1;
        taken += trials.len() / 2;
    }
    (counts, taken as f64 / 200.0)
}

#[test]
fn no_difference_is_inconclusive_although_it_is_judged_after_every_pair() {
    assert_eq!([Word::Proven as usize, Word::Disproven as usize], [0, 1]);
    for (noise, pairs) in [(0.02, 10), (0.1, 16), (0.1, 30)] {
        let ([proven, disproven, inconclusive], _) = words(1.0, noise, pairs);
        assert!(inconclusive >= 190, "{noise} {pairs}: {proven} {disproven} {inconclusive}");
    }
}

#[test]
fn a_clear_effect_ends_early_and_a_harm_is_disproven() {
    let ([proven, disproven, _], pairs) = words(1.5, 0.05, 30);
    assert!(proven == 200 && disproven == 0 && pairs < 12.0, "{proven} {pairs}");
    let ([proven, disproven, _], _) = words(1.0 / 1.1, 0.04, 16);
    assert!(proven == 0 && disproven >= 180, "{proven} {disproven}");
}
