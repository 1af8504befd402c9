//! `untax demo`.

use super::lab::trial::{self, Method};
use crate::Outcome;
use crate::screen::{print, print_json, say, style};
use crate::state::State;
use anyhow::Context;
use std::time::Duration;
use untax_changes::Announced;
use untax_lab::{Cause, Dose, Variant};
use untax_report::terminal;
use untax_scenes::{POSTGRES, Turn};

/// The cause that the story is about: the one that most people have set themselves.
const CAUSE: &str = "cpu-throttled";

/// As short as a minute allows: five pairs are for a verdict, and three show the size.
const METHOD: Method = Method {
    window: Duration::from_secs(3),
    pairs: 3,
    dose: Dose::Strong,
    variant: Variant { load: None, beside: None },
};

/// Arguments of `untax demo`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 the cause was found, and it was gone or smaller once the limit was \
                  removed; 1 it was not found, or stayed; 2 the demo failed; 3 bad usage.\n\n\
                  Examples:\n  untax demo\n  \
                  untax lab run disk-slow --engine mysql     the same with another cause"
)]
pub struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let cause = Cause::find(CAUSE).context("the demo's cause is not in the lab")?;
    let _turn = Turn::wait()?;
    let _announced = Announced::begin("demo");
    say(&format!(
        "A scratch PostgreSQL in a temporary directory gets {}. Your databases are not touched. About {} s.",
        cause.summary,
        METHOD.estimate().as_secs()
    ));
    let result = trial::run(cause, POSTGRES, METHOD, state, say)?;
    if let Err(error) = state.save_run(&result.run, &result) {
        say(&format!("untax: this run is not saved: {error:#}"));
    }
    if args.json {
        print_json(&result)?;
    } else {
        print(&terminal::demo(&result, cause.summary, style()))?;
    }
    Ok(if result.as_expected() { Outcome::Clean } else { Outcome::Findings })
}
