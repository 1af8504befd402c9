//! This host with and without a plan, by turns.

use super::args::Args;
use super::shell::shell;
use super::workload::Measured;
use crate::commands::apply;
use crate::state::State;
use anyhow::{Context, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use untax_changes::executor::Standing;
use untax_changes::{Guard, Receipt, Tree, executor};
use untax_core::plan::{Effect, Plan, Step};
use untax_core::receipt::Status;
use untax_remedies::rate::Rate;
use untax_trials::{Interrupted, Rig, Slot};

/// The arms in the design of every verification.
pub const ARMS: [&str; 2] = ["without the plan", "with the plan"];

/// The place among them of the one with the plan.
pub const WITH: usize = 1;

/// What is tried of a plan.
pub struct Tried {
    /// What is done by turns: the steps that trials can show. All of them where the plan is applied
    /// already, because a receipt is undone as a whole and is to be there as a whole afterwards.
    pub plan: Plan,
    /// Those of the plan, the oldest first, while it is applied and has steps.
    pub receipts: Vec<Receipt>,
    /// The steps that trials can show.
    shown: Vec<Step>,
    /// How each of these stands without the plan.
    without: Vec<Standing>,
}

impl Tried {
    /// Sees what of a plan can be tried, and whether it is applied.
    pub fn of(plan: &Plan, state: &State) -> anyhow::Result<Self> {
        let receipts = apply::in_force(plan, state)?;
        if let Some(half) = receipts.iter().find(|r| r.status() == Status::Interrupted) {
            let (plan, id) = (&plan.plan, half.id());
            bail!("plan {plan} is applied half way: put that back first, with untax undo {id}");
        }
        let shown = plan.steps.iter().filter(|step| step.effect != Effect::Reboot);
        let shown: Vec<Step> = shown.cloned().collect();
        let without = without(&shown, &receipts)?;
        if !shown.is_empty() && without.iter().all(|standing| *standing == Standing::Done) {
            bail!(
                "this host is as plan {} makes it, and no receipt tells what was before: there is \
                 nothing to compare it with",
                plan.plan
            );
        }
        let steps = if receipts.is_empty() { shown.clone() } else { plan.steps.clone() };
        let plan = Plan { steps, ..plan.clone() };
        Ok(Self { plan, receipts, shown, without })
    }

    /// Whether the plan is what lets idle CPUs sleep, or keeps them awake.
    pub fn treats_idle_cpus(&self) -> bool {
        let awake = untax_remedies::KEEP_CPUS_AWAKE;
        self.shown.iter().any(|step| awake.contains(&step.remedy.as_str()))
    }

    /// Whether the plan is applied.
    pub fn is_standing(&self) -> bool {
        !self.receipts.is_empty()
    }
}

/// How each step stands without the plan: as it does now, but for those that receipts will undo.
fn without(steps: &[Step], receipts: &[Receipt]) -> anyhow::Result<Vec<Standing>> {
    if receipts.is_empty() {
        let now = executor::standing(&Tree::live(), steps);
        for standing in &now {
            if let Standing::Refused(why) = standing {
                bail!("nothing was changed: {why}");
            }
        }
        return Ok(now);
    }
    agree(steps, &vec![Standing::Done; steps.len()])?;
    let deeds: Vec<_> = receipts.iter().flat_map(Receipt::deeds).collect();
    let held = |step: &Step| deeds.iter().any(|deed| deed.step.id == step.id);
    Ok(steps.iter().map(|s| if held(s) { Standing::Ready } else { Standing::Done }).collect())
}

/// Sees that each step stands as it is meant to.
fn agree(steps: &[Step], meant: &[Standing]) -> anyhow::Result<()> {
    let now = executor::standing(&Tree::live(), steps);
    let each = steps.iter().zip(meant.iter().zip(&now));
    let others = each.filter(|(_, (meant, now))| meant != now).map(|(step, (_, now))| match now {
        Standing::Ready => format!("{} is as before the plan", step.id),
        Standing::Done => format!("{} is as the plan makes it", step.id),
        Standing::Refused(why) => why.clone(),
    });
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        bail!(
            "somebody else changed what the plan sets, so there is nothing to compare: {}",
            others.join("; ")
        );
    }
    Ok(())
}

/// This host, with and without a plan.
pub struct Host<'a> {
    pub args: &'a Args,
    pub state: &'a State,
    pub stop: Arc<AtomicBool>,
    pub tried: Tried,
    /// Whether the plan was applied before, and is to be afterwards.
    pub standing: bool,
    /// Whether it is now, with the database restarted since; `None` on the way from the one to the
    /// other, where an undo or a restart that failed leaves it.
    pub applied: Option<bool>,
    /// Whether steps of a plan that failed could not be undone: its guard tries that once more.
    pub stuck: bool,
    pub measured: &'a Measured,
    pub measure: &'static str,
    /// Knows whether the host is as it was.
    pub guard: Guard,
}

impl<'a> Host<'a> {
    /// As it is before the first trial.
    pub fn new(
        args: &'a Args,
        state: &'a State,
        stop: Arc<AtomicBool>,
        tried: Tried,
        measured: &'a Measured,
        guard: Guard,
    ) -> Self {
        let standing = tried.is_standing();
        let applied = Some(standing);
        let (stuck, measure) = (false, "");
        Self { args, state, stop, tried, standing, applied, stuck, measured, measure, guard }
    }
}

impl Rig for Host<'_> {
    type Error = anyhow::Error;
    type Outcome = f64;

    fn prepare(&mut self, arms: &[usize], _: &mut dyn FnMut(&str, f64)) -> anyhow::Result<()> {
        self.set(arms.contains(&WITH))
    }

    fn run(&mut self, _: &Slot) -> anyhow::Result<Option<f64>> {
        self.rate().map(Some)
    }

    fn tear_down(&mut self) -> anyhow::Result<()> {
        // Also when it was interrupted.
        self.stop = Arc::default();
        self.set(self.standing)
    }
}

impl Host<'_> {
    /// Applies the plan or undoes it, and restarts the database.
    fn set(&mut self, applied: bool) -> anyhow::Result<()> {
        if self.applied == Some(applied) {
            return Ok(());
        }
        if applied != self.standing {
            self.guard.changing()?;
        }
        // The newest first: each tells what was before it.
        while let Some(receipt) = self.tried.receipts.last_mut() {
            self.applied = None;
            executor::undo_wholly(&Tree::live(), receipt)?;
            self.tried.receipts.pop();
        }
        if applied && !self.tried.plan.steps.is_empty() {
            self.apply()?;
        }
        self.applied = None;
        self.guard.restarting()?;
        restart(self.args.restart.as_deref())?;
        self.applied = Some(applied);
        if applied == self.standing {
            self.guard.as_before();
            return Ok(());
        }
        Ok(self.guard.changing()?)
    }

    /// What one trial achieves, behind those that warm the database up.
    fn rate(&mut self) -> anyhow::Result<f64> {
        // Restarting the database may have changed what it is limited to, too.
        self.is_as_meant()?;
        if self.args.passive.is_none() {
            for _ in 0..self.args.warm_up {
                self.trial()?;
            }
        }
        let rate = self.trial()?;
        self.is_as_meant()?;
        if !self.measure.is_empty() && self.measure != rate.measure {
            bail!(
                "one trial gave {} and another {}, which cannot be compared: let the workload \
                 print its rate every time",
                self.measure,
                rate.measure
            );
        }
        self.measure = rate.measure;
        Ok(rate.per_s)
    }

    /// Applies the plan, under a receipt of its own.
    fn apply(&mut self) -> anyhow::Result<()> {
        let (plan, temporary) = (&self.tried.plan, !self.standing);
        let made = apply::execute(plan, self.state, &self.stop, temporary, |_| {});
        let left = apply::in_force(plan, self.state);
        self.stuck = made.is_err() && left.is_ok_and(|receipts| !receipts.is_empty());
        let receipt = made?.with_context(|| {
            let plan = &plan.plan;
            format!("somebody else did what plan {plan} does, so there is nothing to compare")
        })?;
        self.tried.receipts.push(receipt);
        Ok(())
    }

    /// Sees that nobody else changes what is compared.
    fn is_as_meant(&self) -> anyhow::Result<()> {
        if self.applied == Some(true) {
            return agree(&self.tried.shown, &vec![Standing::Done; self.tried.shown.len()]);
        }
        agree(&self.tried.shown, &self.tried.without)
    }

    fn trial(&self) -> anyhow::Result<Rate> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        self.measured.rate(self.applied == Some(true), &self.stop)
    }
}

/// Restarts the database, where the user said how.
fn restart(command: Option<&str>) -> anyhow::Result<()> {
    command.map_or(Ok(()), |command| {
        shell(command).map(drop).context("the database was not restarted")
    })
}

#[cfg(test)]
mod tests {
    use super::super::args::tests::args;
    use super::*;
    use crate::commands::apply::tests::{applied, makes, plan_of};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;
    use untax_changes::Program;
    use untax_changes::guard::Duty;

    /// A folder for state, and for the files that plans make.
    struct Place(TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn state(&self) -> State {
            State::new(Some(self.path("state")))
        }

        /// A guard that says that it has its duty, and does nothing.
        fn idle_guard(&self) -> Guard {
            let program = self.path("idle");
            fs::write(&program, "#!/bin/sh\nprintf r >&0\nexec cat >/dev/null\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let duty = Duty {
                root: self.path("root"),
                receipts: self.path("receipts"),
                plan: String::new(),
                again: Vec::new(),
                restart: None,
                clean: None,
            };
            Guard::start(&Program::at(program), &duty, None).unwrap()
        }

        /// A plan that makes these files.
        fn plan(&self, files: &[(&str, Effect)]) -> Plan {
            plan_of(files.iter().map(|(name, effect)| makes(&self.path(name), *effect)).collect())
        }

        /// What trials with these arguments run on, and what they do with the host.
        fn tried<T>(&self, args: &Args, plan: &Plan, with: impl FnOnce(&mut Host) -> T) -> T {
            let state = self.state();
            let measured = Measured::choose(args, plan).unwrap();
            let tried = Tried::of(plan, &state).unwrap();
            let guard = self.idle_guard();
            let mut host = Host::new(args, &state, Arc::default(), tried, &measured, guard);
            with(&mut host)
        }
    }

    /// Restarts that take their time, so that each receipt has a name of its own.
    fn slow() -> Args {
        Args { restart: Some("sleep 0.01".to_owned()), ..args("echo 100") }
    }

    /// How many bytes a file has that something left its marks in.
    fn marks(file: &Path) -> u64 {
        fs::metadata(file).map_or(0, |metadata| metadata.len())
    }

    #[test]
    fn a_state_is_reached_when_the_database_was_restarted_and_not_before() {
        let place = Place::new();
        let restarts = place.path("restarts");
        // The first one fails.
        let restart = format!("printf . >>{0}; [ \"$(cat {0})\" != . ]", restarts.display());
        let args = Args { restart: Some(restart), ..args("echo 100") };
        let plan = place.plan(&[("file", Effect::Restart)]);
        place.tried(&args, &plan, |host| {
            assert!(host.set(true).is_err());
            assert_eq!((host.applied, marks(&restarts)), (None, 1));
            host.set(false).unwrap();
            assert_eq!((host.applied, marks(&restarts)), (Some(false), 2));
        });
        assert!(!place.path("file").exists());
        assert!(apply::in_force(&plan, &place.state()).unwrap().is_empty());
    }

    #[test]
    fn a_trial_counts_only_where_nobody_else_changed_what_the_plan_sets() {
        let place = Place::new();
        let file = place.path("file");
        let removes = args(&format!("rm -f {}; echo 100", file.display()));
        let plan = place.plan(&[("file", Effect::Now)]);
        place.tried(&removes, &plan, |host| {
            assert!((host.rate().unwrap() - 100.0).abs() < 1e-9);
            host.set(true).unwrap();
            let said = host.rate().unwrap_err().to_string();
            assert!(said.contains("is as before the plan"), "{said}");
            host.set(false).unwrap();
        });
        let makes = args(&format!("echo here >{}; echo 100", file.display()));
        place.tried(&makes, &plan, |host| {
            let said = host.rate().unwrap_err().to_string();
            assert!(said.contains("is as the plan makes it"), "{said}");
            assert!(host.set(true).unwrap_err().to_string().contains("nothing to compare"));
        });
        assert!(Tried::of(&plan, &place.state()).is_err(), "no receipt tells what was before");
    }

    #[test]
    fn all_receipts_of_a_plan_are_undone_and_it_has_one_afterwards() {
        let place = Place::new();
        let plan = place.plan(&[("one", Effect::Now), ("two", Effect::Now)]);
        let files = || ["one", "two"].map(|name| place.path(name).exists());
        applied(&plan, &place.state(), false);
        fs::remove_file(place.path("two")).unwrap();
        assert!(Tried::of(&plan, &place.state()).is_err(), "it is applied in part");
        applied(&plan, &place.state(), false);
        place.tried(&slow(), &plan, |host| {
            assert!(host.standing && host.tried.receipts.len() == 2);
            host.set(false).unwrap();
            assert_eq!(files(), [false, false]);
            assert!(host.rate().is_ok());
            host.set(true).unwrap();
            assert!(host.rate().is_ok());
        });
        assert_eq!(files(), [true, true]);
        let mut receipts = apply::in_force(&plan, &place.state()).unwrap();
        assert_eq!(receipts.len(), 1);
        executor::undo_wholly(&Tree::live(), &mut receipts[0]).unwrap();
        assert_eq!(files(), [false, false]);
    }

    #[test]
    fn what_takes_effect_at_a_boot_is_no_part_of_trials() {
        let place = Place::new();
        let plan = place.plan(&[("now", Effect::Now), ("boot", Effect::Reboot)]);
        place.tried(&slow(), &plan, |host| {
            host.set(true).unwrap();
            assert!(place.path("now").exists() && !place.path("boot").exists());
            host.set(false).unwrap();
        });
        // What is applied as a whole comes back as a whole.
        applied(&plan, &place.state(), false);
        assert_eq!(Tried::of(&plan, &place.state()).unwrap().plan, plan);
    }
}
