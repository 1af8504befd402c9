//! `untax capture`.

use crate::Outcome;
use crate::screen::{print_json, say};
use crate::state::State;
use crate::watching::{Watching, observe};
use serde::Serialize;
use std::path::{Path, PathBuf};
use untax_host::{Capture, Host};

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
#[derive(Serialize)]
struct Captured<'a> {
    schema: &'static str,
    path: &'a Path,
    databases: Vec<&'a str>,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let (start, end) = (Host::recording(), Host::recording());
    let window = observe(args.watching.options()?, state, &start, &end)?.window;
    // Without a window the end was not read: it is the start.
    let (start, mut end) = (start.into_record(), end.into_record());
    if args.watching.window.is_zero() {
        end = start.clone();
    }
    Capture::write(&args.file, &start, &end)?;
    if args.json {
        let databases = window.end.databases.iter().map(|database| database.id.as_str()).collect();
        print_json(&Captured { schema: "untax.capture/1", path: &args.file, databases })?;
    }
    let (file, number) = (args.file.display(), window.end.databases.len());
    let databases = if number == 1 { "database" } else { "databases" };
    say(&format!(
        "captured {number} {databases} in {file}; untax check --replay {file} shows what it holds"
    ));
    Ok(Outcome::Clean)
}
