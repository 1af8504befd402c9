//! `untax watch`.

mod asked;
mod feed;
mod hangup;
mod screen;
mod steering;
mod stream;
mod view;

use crate::recording::{LIMITS, Recording};
use crate::state::State;
use crate::watching::Watching;
use crate::{Outcome, Usage};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Arguments of `untax watch`.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("window", |window| window.help("How long each window is: 10s, 500ms, 1m")),
    after_help = "Keys: q quit, p pause, s sort, / filter, i hide idle databases, arrows or j and k select, \
                  Enter open and back, e explain a cause, P plan, x save the last window as a check, ? help.\n\n\
                  Examples:\n  untax watch                        every database, ten seconds a window\n  \
                  untax watch --pid 4012 --window 2s one of them, closely, which costs more\n  \
                  untax watch --json --count 30      thirty results, one on a line, for scripts\n  \
                  untax watch --record day.untax     keep what untax timeline explains later"
)]
pub struct Args {
    #[command(flatten)]
    watching: Watching,
    /// Draw nothing, and print the result of each window as one line of JSON, until interrupted.
    /// Results are not saved; the exit code is 1 when any result has findings
    #[arg(long)]
    json: bool,
    /// Also record the windows in this file, for untax timeline; without a terminal, only record.
    /// An existing recording is continued
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The most that a recording may take, MiB, the file before it (FILE.1) included
    #[arg(long, value_name = "MIB", default_value_t = 64, requires = "record", value_parser = clap::value_parser!(u32).range(LIMITS))]
    record_limit: u32,
    /// Stop after this many windows; with --json or --record
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    if args.watching.window.is_zero() {
        let why = "untax watch has windows of 500ms at least; untax check --window 0s takes a single look";
        return Err(Usage(why.to_owned()).into());
    }
    let options = args.watching.options()?;
    let is_seen = std::io::stdout().is_terminal();
    let streams = args.json || (args.record.is_some() && (!is_seen || args.count.is_some()));
    if args.count.is_some() && !streams {
        return Err(Usage("--count is for --json or --record".to_owned()).into());
    }
    let open = |path: &PathBuf| Recording::open(path, args.record_limit);
    let recording = args.record.as_ref().map(open).transpose()?;
    if streams {
        return stream::run(options, args.count, args.json, recording, state);
    }
    if !is_seen {
        let why = "untax watch draws on a terminal, and standard output is none; untax check \
                   prints one result, untax watch --json one for each window";
        return Err(Usage(why.to_owned()).into());
    }
    view::run(options, recording, state)?;
    Ok(Outcome::Clean)
}
