//! `untax apply`.

use super::plan;
use crate::Outcome;
use crate::screen::{print_json, say};
use crate::state::State;
use anyhow::bail;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use untax_changes::executor::{self, Standing};
use untax_changes::{Receipt, Tree, receipt};
use untax_core::Plan;
use untax_core::plan::Step;
use untax_core::receipt::Status;

/// Arguments of `untax apply`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  untax apply plan-20260101T101500000Z --dry-run\n  \
                        untax apply fix/                       a plan written with -o fix\n\n\
                        Exit codes: 0 applied; 2 failed, and all steps are undone; 3 bad usage. \
                        With --dry-run, 0 means that the plan can be applied, and 1 that a step is refused.")]
pub struct Args {
    /// The plan: its id, its file, or the directory that it was written to
    #[arg(value_name = "PLAN")]
    plan: String,
    /// Show the steps and whether they are possible; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result as JSON.
#[derive(Serialize, schemars::JsonSchema)]
struct Applied<'a> {
    schema: &'static str,
    plan: &'a str,
    receipt: Option<&'a str>,
    steps: Vec<Told<'a>>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Told<'a> {
    id: &'a str,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The JSON Schema of what is printed.
pub fn schema() -> schemars::Schema {
    crate::json_schema::of::<Applied>()
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
    let made = execute(&plan, state, &stop, false, tell)?;
    // Where there was nothing to do, earlier receipts tell what was before.
    let known = if made.is_some() { Vec::new() } else { in_force(&plan, state)? };
    if args.json {
        let steps =
            plan.steps.iter().map(|step| Told { id: &step.id, standing: "done", why: None });
        let steps = steps.collect();
        let receipt = made.as_ref().or(known.last()).map(Receipt::id);
        print_json(&Applied { schema: "untax.apply/1", plan: &plan.plan, receipt, steps })?;
    } else {
        for one in made.iter().flat_map(Receipt::disturbances) {
            say(&one.to_string());
        }
        say(&outcome(&plan, made.as_ref(), &known));
        for task in &plan.tasks {
            say(&format!("left to you: {}", task.summary));
        }
    }
    Ok(Outcome::Clean)
}

/// What was done, and what takes it back.
fn outcome(plan: &Plan, made: Option<&Receipt>, known: &[Receipt]) -> String {
    let id = &plan.plan;
    if let Some(receipt) = made {
        return format!("applied; untax undo {} puts everything back", receipt.id());
    }
    if plan.steps.is_empty() {
        return format!("plan {id} has no step that untax could apply: nothing was changed");
    }
    let stands = format!("nothing was changed: this host is as plan {id} makes it already");
    // The newest first: each tells what was before it.
    let undo = known.iter().rev().map(|receipt| format!("untax undo {}", receipt.id()));
    let undo: Vec<String> = undo.collect();
    if undo.is_empty() {
        return format!("{stands}, and no receipt of it tells what was before");
    }
    format!("{stands}; {} puts everything back", undo.join(", then "))
}

/// The receipts of a plan that hold something to be undone, the oldest first.
pub fn in_force(plan: &Plan, state: &State) -> anyhow::Result<Vec<Receipt>> {
    let (mut receipts, _) = Receipt::all(&state.receipts()?);
    receipts.retain(|r| r.header().plan == plan.plan && r.status() != Status::Reverted);
    Ok(receipts)
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
    let look = untax_pipeline::take()?;
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

/// Does the steps of an accepted plan, for good or to be undone by whoever wanted it. `None` where
/// the host is as all of them would make it already.
pub fn execute(
    plan: &Plan,
    state: &State,
    stop: &AtomicBool,
    temporary: bool,
    tell: impl FnMut(&Step),
) -> anyhow::Result<Option<Receipt>> {
    let header = receipt::header(&plan.plan, plan.steps.clone(), temporary);
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

#[cfg(test)]
pub mod tests {
    use super::*;
    use jiff::Timestamp;
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;
    use untax_core::Reading::Absent;
    use untax_core::plan::{Advice, Effect, NodeSize, Origin, Sizing, Target};

    /// A plan with these steps and nothing else.
    pub fn plan_of(steps: Vec<Step>) -> Plan {
        let gap = || Absent("not read".to_owned());
        let advice = Advice { page: "2m".to_owned(), why: String::new(), gain: None };
        let node = NodeSize {
            huge_pages: BTreeMap::new(),
            advice,
            per_numa_node: Vec::new(),
            total_bytes: gap(),
            remaining_bytes: gap(),
        };
        let origin = Origin {
            run: "check-1".to_owned(),
            taken_at: Timestamp::UNIX_EPOCH,
            basis: BTreeMap::new(),
        };
        Plan {
            schema: untax_core::plan::SCHEMA.to_owned(),
            plan: "plan-1".to_owned(),
            snapshot: origin,
            sizing: Sizing { databases: Vec::new(), node },
            steps,
            tasks: Vec::new(),
            warnings: Vec::new(),
            alternatives: Vec::new(),
            expected: Vec::new(),
            digest: String::new(),
        }
    }

    /// A step that makes a file.
    pub fn makes(file: &Path, effect: Effect) -> Step {
        let file = file.to_str().unwrap().to_owned();
        Step {
            id: file.clone(),
            remedy: "test".to_owned(),
            summary: String::new(),
            databases: Vec::new(),
            target: Target::File { file },
            from: None,
            to: Some("here\n".to_owned()),
            refresh: Vec::new(),
            effect,
        }
    }

    /// Does the steps, which must be something to do.
    pub fn applied(plan: &Plan, state: &State, temporary: bool) -> Receipt {
        let on = AtomicBool::new(false);
        let made = execute(plan, state, &on, temporary, |_| {}).unwrap();
        // Receipts are named by the millisecond.
        std::thread::sleep(Duration::from_millis(2));
        made.unwrap()
    }

    #[test]
    fn a_plan_that_stands_names_the_receipt_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().join("state")));
        let plan = plan_of(vec![makes(&folder.path().join("file"), Effect::Now)]);
        let first = applied(&plan, &state, false);
        let again = execute(&plan, &state, &AtomicBool::new(false), false, |_| {}).unwrap();
        assert_eq!(again, None);
        let known = in_force(&plan, &state).unwrap();
        assert_eq!(known.iter().map(Receipt::id).collect::<Vec<_>>(), [first.id()]);
        let said = outcome(&plan, None, &known);
        assert!(said.contains(&format!("; untax undo {} puts", first.id())), "{said}");
        let said = outcome(&plan, None, &[]);
        assert!(said.contains("no receipt"), "{said}");
    }
}
