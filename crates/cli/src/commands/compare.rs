//! `untax compare`.

use super::check;
use crate::Outcome;
use crate::screen::{print, print_json, style};
use crate::state::State;
use untax_core::compare::compare;
use untax_report::{markdown, terminal};

/// Arguments of `untax compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
                        untax compare check-20260101T101500000Z check-20260101T111500000Z")]
pub struct Args {
    /// The earlier check: a saved run, its file, or a capture
    #[arg(value_name = "RUN")]
    before: String,
    /// The later one
    #[arg(value_name = "RUN")]
    after: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Form of the output; --json overrides it
    #[arg(long, value_name = "FORMAT", default_value = "screen", value_parser = check::FORMATS)]
    format: String,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let (before, after) = (check::load(&args.before, state)?, check::load(&args.after, state)?);
    let comparison = compare(&before.check, &after.check);
    if args.json {
        print_json(&comparison)?;
    } else if args.format == "markdown" {
        print(&markdown::comparison(&comparison))?;
    } else {
        print(&terminal::comparison(&comparison, style()))?;
    }
    Ok(Outcome::Clean)
}
