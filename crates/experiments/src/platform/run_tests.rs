use super::*;
use crate::platform::cell::Better;
use crate::platform::fake::{Fake, cell, plan};
use untax_core::bench::RatioVerdict;

/// Hears nothing but counts blocks.
#[derive(Default)]
struct Counting {
    blocks: u32,
}

impl Audience for Counting {
    fn progress(&mut self, _: &Progress) {}

    fn block(&mut self, _: &Outcome) {
        self.blocks += 1;
    }
}

fn go(plan: &Plan, fake: &mut Fake, path: &Path) -> Result<Outcome, PlatformError> {
    run(plan, fake, &Interrupt::default(), path, &mut Counting::default())
}

fn two_cells() -> Vec<Cell> {
    vec![cell("work", Better::Higher), cell("more", Better::Higher)]
}

#[test]
fn every_arm_is_measured_in_every_block_the_baseline_twice_and_each_starts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut fake = Fake::new(&[("base", 100.0), ("slow", 50.0)]);
    let plan = plan(&["base", "slow"], two_cells());
    let outcome = go(&plan, &mut fake, &folder.path().join("trials.json")).unwrap();
    let tally = outcome.tally(&plan);
    for cell in 0..2 {
        assert!(tally.blocks(cell) >= 6, "{}", tally.blocks(cell));
        assert_eq!(tally.ratio(cell, 1, 0).unwrap().verdict, RatioVerdict::Slower);
        let count =
            |arm| outcome.trials.iter().filter(move |t| t.slot.cell == cell && t.slot.arm == arm);
        assert_eq!(count(0).count(), count(2).count());
    }
    // Nothing is up while another is started.
    let steps = fake.steps.borrow();
    let kinds: Vec<&str> = steps.iter().map(|s| s.split(' ').next().unwrap()).collect();
    assert!(kinds.chunks(3).all(|three| three == ["start", "trial", "end"]), "{steps:?}");
}

#[test]
fn an_arm_that_fails_once_is_tried_again_and_one_that_fails_always_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut fake = Fake::new(&[("base", 100.0), ("shaky", 90.0), ("broken", 80.0)]);
    fake.failures = BTreeMap::from([("shaky".to_owned(), 1), ("broken".to_owned(), 99)]);
    let plan = plan(&["base", "shaky", "broken"], vec![cell("work", Better::Higher)]);
    let outcome = go(&plan, &mut fake, &folder.path().join("trials.json")).unwrap();
    let tally = outcome.tally(&plan);
    assert!(tally.ratio(0, 1, 0).is_some_and(|ratio| ratio.pairs >= 5));
    assert!(tally.ratio(0, 2, 0).is_none());
    assert_eq!(outcome.failures[&(0, 2)].len(), 2, "it is not tried for ever");
}

#[test]
fn a_broken_baseline_ends_its_cell_and_the_run_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut fake = Fake::new(&[("base", 100.0), ("slow", 50.0)]);
    fake.failures = BTreeMap::from([("base".to_owned(), 99)]);
    let plan = plan(&["base", "slow"], vec![cell("work", Better::Higher)]);
    let outcome = go(&plan, &mut fake, &folder.path().join("trials.json")).unwrap();
    assert!(outcome.tally(&plan).ratio(0, 1, 0).is_none());
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_a_later_one_goes_on_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.json");
    let plan = plan(&["base", "slow"], two_cells());
    let mut fake = Fake::new(&[("base", 100.0), ("slow", 50.0)]);
    fake.interrupt_after = Some(7);
    let cut = go(&plan, &mut fake, &path).unwrap();
    assert!(cut.was_interrupted && cut.trials.len() == 7, "{} trials", cut.trials.len());
    assert_eq!(fake.steps.borrow().last().map(String::as_str).map(|s| &s[..3]), Some("end"));
    let mut fake = Fake::new(&[("base", 100.0), ("slow", 50.0)]);
    let whole = go(&plan, &mut fake, &path).unwrap();
    assert_eq!(whole.trials[..7], cut.trials[..]);
    let made = fake.steps.borrow().iter().filter(|step| step.starts_with("trial")).count();
    assert_eq!(made + 7, whole.trials.len(), "none is made twice");
    // Each block is whole: all arms once.
    let slots: std::collections::BTreeSet<Slot> = whole.trials.iter().map(|t| t.slot).collect();
    assert_eq!(slots.len(), whole.trials.len());
    assert_eq!(slots.len() % 3, 0);
}

#[test]
fn trials_of_another_configuration_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.json");
    let mut fake = Fake::new(&[("base", 100.0), ("slow", 50.0)]);
    let mut plan = plan(&["base", "slow"], vec![cell("work", Better::Higher)]);
    plan.most_blocks = Some(1);
    go(&plan, &mut fake, &path).unwrap();
    plan.arms[1] = plan.arms[1].clone().with("version", "2");
    assert!(matches!(go(&plan, &mut fake, &path), Err(PlatformError::Saved(_))));
}

#[test]
fn without_time_nothing_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let mut fake = Fake::new(&[("base", 100.0), ("slow", 50.0)]);
    let mut plan = plan(&["base", "slow"], two_cells());
    plan.budget = Duration::ZERO;
    let outcome = go(&plan, &mut fake, &folder.path().join("trials.json")).unwrap();
    assert!(outcome.trials.is_empty() && fake.steps.borrow().is_empty());
}

#[test]
fn the_time_left_is_that_of_the_blocks_to_come_where_the_budget_has_more() {
    let block = Duration::from_secs(2);
    let standing = |blocks, is_lost| Standing { blocks, block, widest: None, is_lost };
    let cells = [standing(1, false), standing(3, false), standing(0, true)];
    let hour = Duration::from_secs(3600);
    assert_eq!(position(&cells, hour, 3), (4, 6, Duration::from_secs(4)));
    assert_eq!(position(&cells, Duration::from_secs(3), 3).2, Duration::from_secs(3));
}
