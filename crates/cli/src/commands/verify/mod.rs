//! `untax verify`.

mod about;
mod args;
mod host;
mod passive;
mod progress;
mod shell;
mod steered;
mod workload;

pub use args::Args;

use super::{apply, plan};
use crate::screen::{print, print_json, say, style, write_file};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::{Context, anyhow, bail};
use host::{ARMS, Host, Tried, WITH};
use jiff::Timestamp;
use progress::Screen;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use steered::Steered;
use untax_changes::guard::Duty;
use untax_changes::{Announced, Guard, Program, Tree};
use untax_core::plan::{Effect, Plan};
use untax_core::power::{self, power};
use untax_core::verdict::{self, Affinity, SCHEMA, Verification, Word, judge};
use untax_core::{Check, Gain};
use untax_remedies::workloads::Workload;
use untax_report::{format, html, markdown, terminal};
use untax_trials::{
    Arm, Cell, Design, Interrupt, Interrupted, Rig, Runner, Saved, Trial, judged,
    without_mixed_pairs,
};
use workload::Measured;

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    if args.workload.is_none() && args.passive.is_none() {
        let why = "name a load with --workload CMD (pgbench, sysbench or redis-benchmark alone will do), or measure the \
                   traffic that is there with --passive 60s";
        return Err(Usage(why.to_owned()).into());
    }
    let plan = plan::load(&args.plan, state)?;
    apply::accept(&plan)?;
    let _announced = Announced::begin("verify");
    if steered::is_wanted(args, &plan) {
        return run_steered(args, state, &plan);
    }
    suits(args, &plan)?;
    let path = state.path(&format!("verify-{}.part", plan.plan))?;
    let design = design(args, Saved::seed(&path).unwrap_or_else(|| fastrand::u64(..)));
    let (saved, earlier) = open(&path, &design)?;
    let stop = stop_by_signals()?;
    let tried = Tried::of(&plan, state)?;
    let standing = tried.is_standing();
    let measured = Measured::choose(args, &plan)?;
    let duty = Duty {
        root: Tree::live().root().to_owned(),
        receipts: state.receipts()?,
        plan: plan.plan.clone(),
        again: if standing { tried.plan.steps.clone() } else { Vec::new() },
        restart: args.restart.clone(),
        clean: Some(measured.clean_command().to_owned()).filter(|command| !command.is_empty()),
    };
    let guard = Guard::start(&Program::this(), &duty, None)?;
    let mut host = Host::new(args, state, Arc::clone(&stop), tried, &measured, guard);
    let treats_idle = host.tried.treats_idle_cpus();
    let judged = |made: &[Trial<f64>]| verdict_trials(made, treats_idle);
    let screen = Screen::new(args.pairs, &saved, &ARMS, &judged);
    let made =
        measured.prepare().and_then(|()| trials(args, &design, &mut host, stop, screen, earlier));
    let cleaned = measured.clean();
    // The guard tries once more where that was not so.
    if host.applied == Some(standing) && !host.stuck {
        host.guard.done();
    }
    let trials = judged(&made?);
    cleaned?;
    let made = Made {
        trials,
        seed: design.seed,
        measure: host.measure,
        predicted: predicted(&plan, state),
        receipt: host.tried.receipts.last().map(|receipt| receipt.id().to_owned()),
        affinity: None,
    };
    report(args, state, &plan, made, saved)
}

/// Runs trials of steering: no affinity, hard partitions, soft affinity.
fn run_steered(args: &Args, state: &State, plan: &Plan) -> anyhow::Result<Outcome> {
    let measured = Measured::choose(args, plan)?;
    let stop = stop_by_signals()?;
    let mut rig = Steered::new(args, state, Arc::clone(&stop), &measured)?;
    let path = state.path(&format!("verify-{}.part", plan.plan))?;
    let seed = Saved::seed(&path).unwrap_or_else(|| fastrand::u64(..));
    let design = steered::design(args, rig.chosen(), length(args), seed);
    let (saved, earlier) = open(&path, &design)?;
    let duty = Duty {
        root: Tree::live().root().to_owned(),
        receipts: state.receipts()?,
        plan: plan.plan.clone(),
        again: Vec::new(),
        restart: None,
        clean: Some(measured.clean_command().to_owned()).filter(|command| !command.is_empty()),
    };
    // The guard removes the workload's files and groups when this is killed; steering has a guard of its own.
    let mut guard = Guard::start(&Program::this(), &duty, None)?;
    let judged = |made: &[Trial<f64>]| steered::soft_trials(&without_mixed_pairs(made));
    let screen = Screen::new(args.pairs, &saved, &steered::ARMS, &judged);
    let made =
        measured.prepare().and_then(|()| trials(args, &design, &mut rig, stop, screen, earlier));
    let cleaned = measured.clean();
    guard.done();
    let made = without_mixed_pairs(&made?);
    cleaned?;
    let made = Made {
        trials: judged(&made),
        seed,
        measure: rig.measure,
        predicted: None,
        receipt: None,
        affinity: Some(Box::new(steered::affinity(rig.chosen(), &made))),
    };
    report(args, state, plan, made, saved)
}

/// The trials of an earlier run that was stopped, to go on with.
fn open(path: &Path, design: &Design) -> anyhow::Result<(Saved, Vec<Trial<f64>>)> {
    let (saved, earlier) = Saved::open(path, design)?;
    if !earlier.is_empty() {
        let (number, path) = (earlier.len(), path.display());
        say(&format!(
            "going on with {number} trials of a run that was stopped; remove {path} to begin anew"
        ));
    }
    Ok((saved, earlier))
}

fn stop_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::default();
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register(*signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// About how long a trial takes with what comes before it; `None` for commands of the user.
fn length(args: &Args) -> Option<Duration> {
    let known = args.workload.as_deref().and_then(Workload::find).map(|_| args.trial);
    args.passive.or(known.map(|trial| trial * (1 + args.warm_up)))
}

/// The host without the plan and with it, under one workload.
fn design(args: &Args, seed: u64) -> Design {
    let cell = Cell { name: "workload".to_owned(), length: length(args) };
    let workload = args.workload.as_deref().unwrap_or("what is served anyway");
    let with = args.workload_applied.as_deref().unwrap_or(workload);
    let arm = |arm: usize| {
        let configuration = if arm == WITH { with } else { workload }.to_owned();
        Arm { configuration, ..Arm::new(ARMS[arm]) }
    };
    let arms = (0..ARMS.len()).map(arm).collect();
    Design::of_visits(seed, arms, vec![cell], args.pairs)
}

/// Makes the trials that earlier ones are not, and saves each; the host is as before when this returns, if
/// that can be.
fn trials(
    args: &Args,
    design: &Design,
    rig: &mut impl Rig<Error = anyhow::Error, Outcome = f64>,
    stop: Arc<AtomicBool>,
    mut screen: Screen,
    earlier: Vec<Trial<f64>>,
) -> anyhow::Result<Vec<Trial<f64>>> {
    let interrupt = Interrupt::from(stop);
    let live = untax_host::Host::live();
    let runner = Runner::new(design, &interrupt, &live).within(args.budget);
    runner.run(rig, earlier, &mut screen).map_err(|error| {
        match error.downcast_ref::<Interrupted>() {
            Some(_) => {
                anyhow!("interrupted; the host is as before. Run the same command again to resume")
            }
            None => error,
        }
    })
}

/// The trials as a verdict takes them: those of two regimes are no pairs, unless the plan is what makes CPUs
/// sleep or not.
fn verdict_trials(made: &[Trial<f64>], treats_idle: bool) -> Vec<verdict::Trial> {
    if treats_idle {
        return judged(made, WITH, |rate| *rate);
    }
    judged(&without_mixed_pairs(made), WITH, |rate| *rate)
}

/// The trials, and what is told of them.
struct Made {
    trials: Vec<verdict::Trial>,
    /// The seed of their random order.
    seed: u64,
    measure: &'static str,
    predicted: Option<Gain>,
    receipt: Option<String>,
    affinity: Option<Box<Affinity>>,
}

/// Refuses a plan of which trials would show nothing, and one for which the database must be
/// restarted when nobody said how. Says what trials do not show.
fn suits(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let id = &plan.plan;
    if plan.steps.is_empty() && args.workload_applied.is_none() {
        bail!(
            "plan {id} has no step that untax could apply: when you have done what it leaves to \
             you, --workload-applied says how to reach what it changed; --steer tries soft affinity"
        );
    }
    let at_boot = plan.steps.iter().filter(|step| step.effect == Effect::Reboot);
    let at_boot: Vec<&str> = at_boot.map(|step| step.id.as_str()).collect();
    if at_boot.len() == plan.steps.len() && args.workload_applied.is_none() {
        bail!(
            "plan {id} takes effect when the machine is booted, so trials would compare the host \
             with itself: check under load, apply the plan, reboot, check under the same load, \
             and let untax compare tell both checks apart"
        );
    }
    if !at_boot.is_empty() {
        let steps = at_boot.join(", ");
        say(&format!("no part of the trials, because only a boot makes it effective: {steps}"));
    }
    let restart = plan.steps.iter().any(|step| step.effect == Effect::Restart);
    if restart && args.restart.is_none() {
        let text = "this plan takes effect when the database is restarted: say how with --restart";
        return Err(Usage(text.to_owned()).into());
    }
    Ok(())
}

/// Judges the trials; keeps and shows what came out.
fn report(
    args: &Args,
    state: &State,
    plan: &Plan,
    made: Made,
    saved: Saved,
) -> anyhow::Result<Outcome> {
    let has_trials = !made.trials.is_empty();
    let outcome = show(args, state, plan, made);
    // Whatever came out: nothing is left to go on with.
    if has_trials {
        saved.remove()?;
    }
    outcome
}

fn show(args: &Args, state: &State, plan: &Plan, made: Made) -> anyhow::Result<Outcome> {
    let Made { trials, seed, measure, predicted, receipt, affinity } = made;
    let verdict = judge(&trials).with_context(|| no_pair(&trials))?;
    let run = State::new_run("verify");
    let result = Verification {
        schema: SCHEMA.to_owned(),
        run: run.clone(),
        plan: plan.plan.clone(),
        taken_at: Timestamp::now(),
        about: Some(about::of(args, plan)),
        measure: measure.to_owned(),
        power: power(&trials, power::FACTOR),
        receipt,
        seed: Some(seed),
        trials,
        predicted,
        verdict,
        affinity,
    };
    let saved = state.save_run(&run, &result);
    let page = args.html.as_ref();
    let page = page.map_or(Ok(()), |path| write_file(path, &html::verification(&result)));
    if args.json {
        print_json(&result)?;
    } else if args.format == "markdown" {
        print(&markdown::verification(&result))?;
    } else {
        print(&terminal::verification(&result, style()))?;
    }
    // Last, so that a full disk does not cost the user the result.
    saved?;
    page?;
    Ok(if verdict.word == Word::Proven { Outcome::Clean } else { Outcome::Findings })
}

/// Why there is no verdict.
fn no_pair(trials: &[verdict::Trial]) -> String {
    match trials.iter().find(|trial| !trial.counts()) {
        Some(trial) => {
            let reasons = format::guards(&trial.spoiled);
            format!("no pair of trials counts, because trials were spoiled: {reasons}")
        }
        None => "not one pair of trials was made".to_owned(),
    }
}

/// What the check predicted for the findings that the plan answers: the largest, as removing one
/// cause often removes a part of another.
fn predicted(plan: &Plan, state: &State) -> Option<Gain> {
    let saved: super::check::Saved = state.load_run(&plan.snapshot.run, None).ok()?;
    let Check { databases, .. } = saved.check;
    let answers = |remedy: &Option<String>| {
        let id = remedy.as_deref().unwrap_or_default();
        untax_remedies::REMEDIES.iter().any(|known| {
            known.answers.contains(&id) && plan.steps.iter().any(|step| step.remedy == known.id)
        })
    };
    let findings = databases.into_iter().flat_map(|database| database.findings);
    let gains = findings.filter(|finding| answers(&finding.remedy)).filter_map(|f| f.gain);
    gains.max_by(|a, b| a.factor.total_cmp(&b.factor))
}

#[cfg(test)]
mod tests {
    use super::args::tests::args;
    use super::*;
    use crate::commands::apply::tests::{makes, plan_of};
    use untax_trials::{Observer, Slot};

    #[test]
    fn trials_of_the_same_command_are_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verify-plan-1.part.json");
        let (saved, none) = Saved::open::<f64>(&path, &design(&args("true"), 7)).unwrap();
        assert!(none.is_empty());
        let slot = Slot { block: 0, arm: WITH, cell: 0, repeat: false };
        let made = [Trial { slot, outcome: 5.0, took_s: 1.0, guards: Vec::new(), sleeps: None }];
        let judged = |made: &[Trial<f64>]| verdict_trials(made, false);
        let mut screen = Screen::new(6, &saved, &ARMS, &judged);
        screen.trial(&made).unwrap();
        let seed = Saved::seed(&path).unwrap();
        let again =
            |args: &Args| Saved::open::<f64>(&path, &design(args, seed)).map(|(_, made)| made);
        assert_eq!(again(&Args { pairs: 9, ..args("true") }).unwrap(), made);
        let pooler = Args { workload_applied: Some("false".to_owned()), ..args("true") };
        for other in [args("false"), pooler] {
            let refused = again(&other).unwrap_err().to_string();
            assert!(refused.contains("begin anew"), "{refused}");
        }
    }

    #[test]
    fn a_plan_for_the_next_boot_is_no_plan_for_trials() {
        let with = |effects: &[Effect]| {
            plan_of(effects.iter().map(|effect| makes(Path::new("/x"), *effect)).collect())
        };
        let refused = suits(&args("true"), &with(&[Effect::Reboot])).unwrap_err().to_string();
        assert!(refused.contains("untax compare"), "{refused}");
        suits(&args("true"), &with(&[Effect::Reboot, Effect::Now])).unwrap();
        let unsaid = suits(&args("true"), &with(&[Effect::Reboot, Effect::Restart])).unwrap_err();
        assert!(unsaid.is::<Usage>(), "{unsaid}");
        let pooler = Args { workload_applied: Some("true".to_owned()), ..args("true") };
        suits(&pooler, &with(&[Effect::Reboot])).unwrap();
        suits(&pooler, &with(&[])).unwrap();
        assert!(suits(&args("true"), &with(&[])).is_err());
    }
}
