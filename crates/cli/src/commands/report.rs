//! `untax report`.

use super::check::Saved;
use crate::Outcome;
use crate::screen::{print_json, write_file};
use crate::state::State;
use anyhow::{Context, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use untax_core::{lab, timeline, verdict};
use untax_experiments::Experiment;
use untax_report::html::{self, Run};

/// Why a saved result cannot be read.
const OTHER_VERSION: &str = "it was saved by another version of untax";

/// Arguments of `untax report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
                        untax report check-20260101T101500000Z verify-20260101T111500000Z \
                        -o report.html")]
pub struct Args {
    /// The results: saved runs, or their files
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// The page
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

/// What was written, as JSON.
#[derive(Serialize, schemars::JsonSchema)]
struct Written<'a> {
    schema: &'static str,
    path: &'a Path,
    /// How many results the page shows.
    results: usize,
}

/// The JSON Schema of what is printed.
pub fn schema() -> schemars::Schema {
    crate::json_schema::of::<Written>()
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let runs = args.runs.iter().map(|run| {
        let saved: Value = state.load_run(run, None)?;
        page(saved).with_context(|| run.clone())
    });
    let runs: Vec<Run> = runs.collect::<anyhow::Result<_>>()?;
    let results = runs.len();
    write_file(&args.output, &html::report(runs))?;
    if args.json {
        print_json(&Written { schema: "untax.report/1", path: &args.output, results })?;
    }
    Ok(Outcome::Clean)
}

/// A saved result by what it says that it is.
fn page(saved: Value) -> anyhow::Result<Run> {
    // A check is saved with its window, or printed without.
    if saved.get("check").is_some() {
        let Saved { check, .. } = read(saved)?;
        return Ok(Run::Check(Box::new(check)));
    }
    let schema = saved["schema"].as_str().unwrap_or_default().to_owned();
    Ok(match schema.as_str() {
        untax_core::check::SCHEMA => Run::Check(Box::new(read(saved)?)),
        verdict::SCHEMA => Run::Verification(read(saved)?),
        lab::MATRIX_SCHEMA => Run::Lab(read(saved)?),
        timeline::SCHEMA => Run::Timeline(Box::new(read(saved)?)),
        "" => bail!("it is no result of untax"),
        other => match Experiment::of_schema(other) {
            Some(experiment) => {
                let result = (experiment.read)(saved).context(OTHER_VERSION)?;
                Run::Bench(result.html())
            }
            None => bail!("{other} has no page; it prints itself with --json"),
        },
    })
}

fn read<T: DeserializeOwned>(saved: Value) -> anyhow::Result<T> {
    serde_json::from_value(saved).context(OTHER_VERSION)
}
