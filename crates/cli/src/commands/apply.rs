//! `untax apply`.

use super::plan;
use crate::screen::{print_json, say};
use crate::state::State;
use crate::{Outcome, observe};
use anyhow::bail;
use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use untax_core::Plan;
use untax_core::plan::Step;
use untax_core::receipt::{Header, SCHEMA};
use untax_remedies::executor::{self, Standing};
use untax_remedies::{Receipt, Tree};

/// Arguments of `untax apply`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  untax apply plan-20260101T101500000Z --dry-run\n  \
                        untax apply fix/                       a plan written with -o fix\n\n\
                        Exit codes: 0 applied, or it could be (--dry-run); 1 a step is refused \
                        (--dry-run); 2 could not do it, and all that was done is undone; 3 bad usage.")]
pub struct Args {
    /// The plan: its id, its file, or the directory that it was written to
    #[arg(value_name = "PLAN")]
    plan: String,
    /// Say what would be done and whether it can be; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result as JSON.
#[derive(Serialize)]
struct Applied<'a> {
    schema: &'static str,
    plan: &'a str,
    receipt: Option<&'a str>,
    steps: Vec<Told<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    id: &'a str,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let plan = plan::load(&args.plan, state)?;
    accept(&plan)?;
    if args.dry_run {
        return dry(args, &plan);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let tell = |step: &Step| say(&format!("{}: {}", step.id, step.summary));
    let receipt = execute(&plan, state, &stop, false, tell)?;
    if args.json {
        let steps =
            plan.steps.iter().map(|step| Told { id: &step.id, standing: "done", why: None });
        let steps = steps.collect();
        let receipt = Some(receipt.id());
        print_json(&Applied { schema: "untax.apply/1", plan: &plan.plan, receipt, steps })?;
    } else {
        say(&format!("applied; untax undo {} puts everything back", receipt.id()));
        for task in &plan.tasks {
            say(&format!("left to you: {}", task.summary));
        }
    }
    Ok(Outcome::Clean)
}

/// Refuses a plan that was edited, that has a refusing warning, that this user or host does not let
/// be done, or whose host has changed.
pub fn accept(plan: &Plan) -> anyhow::Result<()> {
    if !untax_remedies::intact(plan) {
        bail!(
            "plan {} is not as untax made it: make a new one with untax plan, and choose with \
             --only",
            plan.plan
        );
    }
    if let Some(warning) = plan.warnings.iter().find(|warning| warning.refuses) {
        bail!("plan {} cannot be applied: {}", plan.plan, warning.text);
    }
    let tree = Tree::live();
    let unwritable: Vec<String> =
        plan.steps.iter().filter_map(|step| executor::unwritable(&tree, step)).collect();
    if !unwritable.is_empty() {
        bail!("nothing was changed: {}", unwritable.join("; "));
    }
    let look = observe::look()?;
    let now = untax_remedies::basis(&look);
    let differences = untax_remedies::differences(&plan.snapshot.basis, &now);
    if !differences.is_empty() {
        bail!(
            "this host is not as it was when {} was made: {}; check again, and make a new plan",
            plan.snapshot.run,
            differences.join("; ")
        );
    }
    // Memory may have been taken since the check.
    let left = executor::standing(&tree, &plan.steps).into_iter().zip(&plan.steps);
    let left = left.filter(|(standing, _)| *standing == Standing::Ready);
    let left: Vec<Step> = left.map(|(_, step)| step.clone()).collect();
    if let Some(warning) = untax_remedies::overcommit(&left, &look.host) {
        bail!("plan {} cannot be applied now: {}", plan.plan, warning.text);
    }
    Ok(())
}

/// Does the steps of an accepted plan, for good or to be undone by whoever wanted it.
pub fn execute(
    plan: &Plan,
    state: &State,
    stop: &AtomicBool,
    temporary: bool,
    tell: impl FnMut(&Step),
) -> anyhow::Result<Receipt> {
    let header = Header {
        schema: SCHEMA.to_owned(),
        receipt: State::new_run("receipt"),
        plan: plan.plan.clone(),
        begun_at: Timestamp::now(),
        temporary,
        steps: plan.steps.clone(),
    };
    Ok(executor::apply(&Tree::live(), &state.receipts()?, header, stop, tell)?)
}

fn dry(args: &Args, plan: &Plan) -> anyhow::Result<Outcome> {
    let standing = executor::standing(&Tree::live(), &plan.steps);
    let told = plan.steps.iter().zip(&standing).map(|(step, standing)| {
        let (word, why) = match standing {
            Standing::Ready => ("ready", None),
            Standing::Done => ("done", None),
            Standing::Refused(why) => ("refused", Some(why.clone())),
        };
        Told { id: &step.id, standing: word, why }
    });
    let steps: Vec<Told> = told.collect();
    if args.json {
        print_json(&Applied { schema: "untax.apply/1", plan: &plan.plan, receipt: None, steps })?;
    } else {
        for (step, told) in plan.steps.iter().zip(&steps) {
            let what = told.why.as_deref().unwrap_or(&step.summary);
            say(&format!("{}: {}: {what}", told.standing, step.id));
        }
        say("nothing was changed");
    }
    let refused = standing.iter().any(|standing| matches!(standing, Standing::Refused(_)));
    Ok(if refused { Outcome::Findings } else { Outcome::Clean })
}
