//! `untax undo`.

use crate::screen::{print, print_json, say};
use crate::state::State;
use crate::{Outcome, Usage};
use serde::Serialize;
use std::path::Path;
use untax_changes::executor;
use untax_changes::{Receipt, Tree, Undone};
use untax_core::receipt::Status;

/// Arguments of `untax undo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  untax undo                             list the receipts\n  \
                        untax undo receipt-20260101T101500000Z\n  \
                        untax undo --stale                     what a crash left half done\n\n\
                        Exit codes: 0 all is restored, 1 something is left, 2 failed, 3 bad \
                        usage.")]
pub struct Args {
    /// The receipt: its id or its file; without one, all are listed
    #[arg(value_name = "RECEIPT")]
    receipt: Option<String>,
    /// Undo a plan that a crash or a kill interrupted half way
    #[arg(long, conflicts_with = "receipt")]
    stale: bool,
    /// Also restore values that somebody else has changed since
    #[arg(long)]
    force: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The schema's name and version.
const SCHEMA: &str = "untax.undo/1";

/// What was undone as JSON, of however many receipts.
#[derive(Serialize, schemars::JsonSchema)]
struct Report<'a> {
    schema: &'static str,
    receipts: &'a [Done],
    /// Why each receipt that cannot be read cannot.
    damaged: &'a [String],
}

/// What undoing one receipt did.
#[derive(Serialize, schemars::JsonSchema)]
struct Done {
    receipt: String,
    #[serde(flatten)]
    undone: Undone,
}

/// A receipt as JSON.
#[derive(Serialize)]
struct Told<'a> {
    receipt: &'a str,
    plan: &'a str,
    begun_at: jiff::Timestamp,
    status: Status,
    steps: Vec<&'a str>,
}

/// The JSON Schema of what is printed.
pub fn schema() -> schemars::Schema {
    crate::json_schema::of::<Report>()
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let (receipts, damaged) = Receipt::all(&state.receipts()?);
    let damaged = damaged.into_iter().map(|error| format!("{:#}", anyhow::Error::from(error)));
    let damaged: Vec<String> = damaged.collect();
    for why in &damaged {
        say(&format!("untax: {why}"));
    }
    let chosen: Vec<Receipt> = match &args.receipt {
        Some(id) => vec![find(id, receipts)?],
        None if args.stale => {
            receipts.into_iter().filter(|r| r.status() == Status::Interrupted).collect()
        }
        None => return list(args, &receipts),
    };
    let (done, ended) = undo_all(args, chosen);
    if args.json {
        print_json(&Report { schema: SCHEMA, receipts: &done, damaged: &damaged })?;
    }
    ended?;
    // What a damaged one tells of may be half done.
    let all_known = !args.stale || damaged.is_empty();
    let whole = all_known && done.iter().all(|one| one.undone.is_whole());
    Ok(if whole { Outcome::Clean } else { Outcome::Findings })
}

/// Undoes one after the other. Where one could not be, it ends: with what was done until then.
fn undo_all(args: &Args, chosen: Vec<Receipt>) -> (Vec<Done>, anyhow::Result<()>) {
    let undo = if args.stale { executor::undo_stale } else { executor::undo };
    let mut done = Vec::new();
    for mut receipt in chosen {
        match undo(&Tree::live(), &mut receipt, args.force) {
            Ok(undone) => {
                if !args.json {
                    tell(&receipt, &undone);
                }
                done.push(Done { receipt: receipt.id().to_owned(), undone });
            }
            Err(error) => return (done, Err(error.into())),
        }
    }
    (done, Ok(()))
}

fn find(id: &str, receipts: Vec<Receipt>) -> anyhow::Result<Receipt> {
    if let Some(receipt) = receipts.into_iter().find(|receipt| receipt.id() == id) {
        return Ok(receipt);
    }
    if Path::new(id).is_file() {
        return Ok(Receipt::open(Path::new(id))?);
    }
    Err(Usage(format!("there is no receipt {id}; untax undo lists them")).into())
}

fn list(args: &Args, receipts: &[Receipt]) -> anyhow::Result<Outcome> {
    let told = receipts.iter().map(|receipt| Told {
        receipt: receipt.id(),
        plan: &receipt.header().plan,
        begun_at: receipt.header().begun_at,
        status: receipt.status(),
        steps: receipt.header().steps.iter().map(|step| step.id.as_str()).collect(),
    });
    let told: Vec<Told> = told.collect();
    if args.json {
        print_json(&told)?;
        return Ok(Outcome::Clean);
    }
    let line = |told: &Told| {
        let status = match told.status {
            Status::Applied => "applied",
            Status::Interrupted => "half done",
            Status::Reverted => "undone",
        };
        format!("{}  {status:<9}  {}\n", told.receipt, told.steps.join(", "))
    };
    print(&told.iter().map(line).collect::<String>())?;
    if told.is_empty() {
        say("nothing was applied on this host");
    }
    Ok(Outcome::Clean)
}

fn tell(receipt: &Receipt, undone: &Undone) {
    let Undone { restored, drifted, failed, disturbed, unrecorded } = undone;
    say(&format!("{}: {} steps put back", receipt.id(), restored.len()));
    for drift in drifted {
        say(&format!("left alone: {drift}; --force puts it back"));
    }
    for (step, why) in failed {
        say(&format!("not put back: {step}: {why}"));
    }
    for one in disturbed {
        say(&one.to_string());
    }
    if let Some(why) = unrecorded {
        say(&format!("the receipt does not say so: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::apply::tests::{applied, makes, plan_of};
    use untax_core::plan::Effect;

    #[test]
    fn what_is_undone_is_one_object_that_names_the_receipts() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().join("state")));
        let file = folder.path().join("file");
        let left = applied(&plan_of(vec![makes(&file, Effect::Now)]), &state, true);
        let args = Args { receipt: None, stale: true, force: false, json: true };
        let (done, ended) = undo_all(&args, vec![left.clone()]);
        ended.unwrap();
        assert!(!file.exists());
        let report = Report { schema: SCHEMA, receipts: &done, damaged: &[] };
        let told = serde_json::to_value(&report).unwrap();
        let step = file.to_str().unwrap();
        let receipt = serde_json::json!({
            "receipt": left.id(),
            "restored": [step],
            "drifted": [],
            "failed": [],
            "disturbed": [],
            "unrecorded": null,
        });
        let whole = serde_json::json!({
            "schema": "untax.undo/1",
            "receipts": [receipt],
            "damaged": [],
        });
        assert_eq!(told, whole);
    }

    #[test]
    fn nobody_can_tell_that_all_is_back_while_a_receipt_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(Some(folder.path().to_owned()));
        let args = Args { receipt: None, stale: true, force: false, json: false };
        assert_eq!(run(&args, &state).unwrap(), Outcome::Clean);
        let receipts = state.receipts().unwrap();
        std::fs::create_dir_all(&receipts).unwrap();
        std::fs::write(receipts.join("receipt-1.jsonl"), "garbage\n").unwrap();
        assert_eq!(run(&args, &state).unwrap(), Outcome::Findings);
    }
}
