//! `untax undo`.

use crate::screen::{print, print_json, say};
use crate::state::State;
use crate::{Outcome, Usage};
use serde::Serialize;
use std::path::Path;
use untax_core::receipt::Status;
use untax_remedies::executor;
use untax_remedies::{Receipt, Tree, Undone};

/// Arguments of `untax undo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  untax undo                             list the receipts\n  \
                        untax undo receipt-20260101T101500000Z\n  \
                        untax undo --stale                     what a crash left half done\n\n\
                        Exit codes: 0 all is back, 1 something is left, 2 could not do it, \
                        3 bad usage.")]
pub struct Args {
    /// The receipt: its id or its file; without one, all are listed
    #[arg(value_name = "RECEIPT")]
    receipt: Option<String>,
    /// Undo what was interrupted half way, by a crash or a kill
    #[arg(long, conflicts_with = "receipt")]
    stale: bool,
    /// Also put back what somebody else has changed since
    #[arg(long)]
    force: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
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

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let (receipts, damaged) = Receipt::all(&state.receipts()?);
    // What a damaged one tells of may be half done.
    let mut whole = !args.stale || damaged.is_empty();
    for error in damaged {
        say(&format!("untax: {:#}", anyhow::Error::from(error)));
    }
    let chosen: Vec<Receipt> = match &args.receipt {
        Some(id) => vec![find(id, receipts)?],
        None if args.stale => {
            receipts.into_iter().filter(|r| r.status() == Status::Interrupted).collect()
        }
        None => return list(args, &receipts),
    };
    for mut receipt in chosen {
        let undone = executor::undo(&Tree::live(), &mut receipt, args.force)?;
        whole &= undone.is_whole();
        if args.json {
            print_json(&undone)?;
        } else {
            tell(&receipt, &undone);
        }
    }
    Ok(if whole { Outcome::Clean } else { Outcome::Findings })
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
    let Undone { restored, drifted, failed, unrecorded } = undone;
    say(&format!("{}: {} steps put back", receipt.id(), restored.len()));
    for drift in drifted {
        say(&format!("left alone: {drift}; --force puts it back"));
    }
    for (step, why) in failed {
        say(&format!("not put back: {step}: {why}"));
    }
    if let Some(why) = unrecorded {
        say(&format!("the receipt does not say so: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
