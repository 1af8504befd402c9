//! `untax runs`.

use crate::screen::{print, print_json};
use crate::state::State;
use crate::{Outcome, run_names};
use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use untax_core::Check;
use untax_core::check::Checked;
use untax_report::format;

/// Arguments of `untax runs`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  untax runs                    all that are kept, the latest first\n  \
                        untax runs @last              the latest one\n  \
                        untax runs --database postgres  checks in which one was found, with its tax\n  \
                        untax plan --from check-20260101T10"
)]
pub struct Args {
    /// Say what this run found, and where it is saved
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Only checks of databases whose id begins so
    #[arg(long, value_name = "ID", conflicts_with = "run")]
    database: Option<String>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// The schema's name and version.
const SCHEMA: &str = "untax.runs/1";

/// The saved runs as JSON.
#[derive(Serialize, schemars::JsonSchema)]
struct Runs {
    schema: &'static str,
    runs: Vec<Listed>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Listed {
    run: String,
    kind: String,
    path: PathBuf,
    /// What it says, in one line for each database or result.
    found: Vec<Found>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Found {
    /// The database, where it is about one.
    database: Option<String>,
    summary: String,
}

/// The JSON Schema of what is printed.
pub fn schema() -> schemars::Schema {
    crate::json_schema::of::<Runs>()
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let listed = match &args.run {
        Some(run) => vec![one(run, state)?],
        None => listed(args.database.as_deref(), state),
    };
    if args.json {
        print_json(&Runs { schema: SCHEMA, runs: listed })?;
    } else {
        print(&text(&listed, args.run.is_some()))?;
    }
    Ok(Outcome::Clean)
}

fn one(run: &str, state: &State) -> anyhow::Result<Listed> {
    let path = state.find_run(run, None)?;
    let saved = state.load_run(run, None)?;
    let id = path.file_stem().and_then(|stem| stem.to_str()).context("a run's name is text")?;
    Ok(of(id, path.clone(), &saved))
}

fn listed(database: Option<&str>, state: &State) -> Vec<Listed> {
    let all = state.runs().into_iter().filter_map(|id| one(&id, state).ok());
    let Some(database) = database else { return all.collect() };
    let is_it = |found: &Found| found.database.as_ref().is_some_and(|id| id.starts_with(database));
    let mut some: Vec<Listed> = all.collect();
    for run in &mut some {
        run.found.retain(is_it);
    }
    some.retain(|run| !run.found.is_empty());
    some
}

fn of(id: &str, path: PathBuf, saved: &Value) -> Listed {
    let check = saved.get("check").map(|check| serde_json::from_value::<Check>(check.clone()));
    let found = match check {
        Some(Ok(check)) => of_check(&check),
        Some(Err(_)) => vec![said("saved by another version of untax".to_owned())],
        None => {
            let verdict = saved["verdict"].as_str().map(|verdict| said(verdict.to_owned()));
            verdict.into_iter().collect()
        }
    };
    Listed { run: id.to_owned(), kind: run_names::kind(id).to_owned(), path, found }
}

fn said(summary: String) -> Found {
    Found { database: None, summary }
}

fn of_check(check: &Check) -> Vec<Found> {
    if check.databases.is_empty() {
        return vec![said("no database was found".to_owned())];
    }
    let of_one = |database: &Checked| {
        let tax = format::tax_or_not(database.tax.as_ref());
        let first = database.findings.first();
        let first =
            first.map_or_else(|| "nothing found".to_owned(), |finding| finding.rule.clone());
        Found { database: Some(database.id.clone()), summary: format!("tax {tax}, {first}") }
    };
    check.databases.iter().map(of_one).collect()
}

fn text(runs: &[Listed], with_path: bool) -> String {
    if runs.is_empty() {
        return "No run is saved here; untax check makes one.\n".to_owned();
    }
    let mut text = String::new();
    for run in runs {
        text += &run.run;
        text += "\n";
        for found in &run.found {
            let database =
                found.database.as_deref().map(|id| format!("{id}: ")).unwrap_or_default();
            text += &format!("    {database}{}\n", found.summary);
        }
        if with_path {
            text += &format!("    {}\n", run.path.display());
        }
    }
    text
}
