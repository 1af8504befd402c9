//! `untax capture`.

use crate::Outcome;
use crate::screen::{print_json, say};
use crate::state::State;
use crate::watching::{Watching, observe};
use serde::Serialize;
use std::path::{Path, PathBuf};
use untax_core::Reading;
use untax_host::{Capture, Host};
use untax_trials::Interrupt;

/// Arguments of `untax capture`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  untax capture host.tar.gz\n  \
                        untax check --replay host.tar.gz   on any other machine\n  \
                        untax capture tests/cases/my-host  a folder, as the project's tests take it")]
pub struct Args {
    /// Where to save it: an archive if the name ends in .tar.gz, a folder otherwise
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print what was saved as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    watching: Watching,
}

/// The result as JSON.
#[derive(Serialize, schemars::JsonSchema)]
struct Captured<'a> {
    schema: &'static str,
    path: &'a Path,
    databases: Vec<&'a str>,
    /// What of the window it holds, or why not.
    traced_time: Reading<bool>,
    disks: Reading<bool>,
}

/// The JSON Schema of what is printed.
pub fn schema() -> schemars::Schema {
    crate::json_schema::of::<Captured>()
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let (start, end) = (Host::recording(), Host::recording());
    let window =
        observe(args.watching.options()?, state, &start, &end, &Interrupt::default())?.window;
    // Without a window the end was not read: it is the start.
    let (start, mut end) = (start.into_record(), end.into_record());
    if args.watching.window.is_zero() {
        end = start.clone();
    }
    Capture::write(&args.file, &start, &end)?;
    let held = |why: Option<String>| why.map_or(Reading::Present(true), Reading::Absent);
    let traced_time = held(window.activity.why());
    let disks = held(window.io.as_ref().and_then(|io| io.flows.as_ref()).why());
    let file = args.file.display();
    let number = window.end.databases.len();
    let plural = if number == 1 { "database" } else { "databases" };
    say(&format!(
        "captured {number} {plural} in {file}; untax check --replay {file} shows what it holds"
    ));
    for (what, held) in [("traced time", &traced_time), ("requests to disks", &disks)] {
        let how = held.why().map_or_else(|| "in it".to_owned(), |why| format!("not in it: {why}"));
        say(&format!("{what}: {how}"));
    }
    if args.json {
        let databases = window.end.databases.iter().map(|database| database.id.as_str()).collect();
        let (schema, path) = ("untax.capture/1", args.file.as_path());
        print_json(&Captured { schema, path, databases, traced_time, disks })?;
    }
    Ok(Outcome::Clean)
}
