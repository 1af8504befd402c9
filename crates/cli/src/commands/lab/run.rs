//! `untax lab run`.

use super::recording::is_of_scene;
use super::trial::{self, Method};
use super::{cause, dose, load, release};
use crate::duration::duration;
use crate::screen::{print, print_json, say, style};
use crate::state::State;
use crate::{Outcome, Usage};
use std::path::PathBuf;
use std::time::Duration;
use untax_changes::Announced;
use untax_core::truth::Recorded;
use untax_lab::{Cause, Dose, OtherLoad, Variant};
use untax_report::terminal;
use untax_scenes::{Release, Turn};

/// Arguments of `untax lab run`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 found as expected, 1 not found (or something found for none), 2 \
                  failed, 3 bad usage.\n\n\
                  Examples:\n  untax lab run cpu-throttled --engine postgres\n  \
                  untax lab run none --engine redis             nothing is to be found\n  \
                  untax lab run lock-contended --engine mysql --window 10s --pairs 7 --json"
)]
pub struct Args {
    /// The cause: see untax lab list
    #[arg(value_name = "CAUSE", value_parser = cause)]
    cause: &'static Cause,
    /// The server to put it on. mysql is a MariaDB, and may be called mariadb; those with a number
    /// and valkey are unpacked by scripts/engines.sh
    #[arg(long, value_parser = release(), value_name = "ENGINE", default_value = "postgres")]
    engine: Release,
    /// How much of the cause: mild ones take about as much as platforms do
    #[arg(long, value_parser = dose(), value_name = "DOSE", default_value = "strong")]
    dose: Dose,
    /// How long to watch in each check, and in each trial, which is checked too
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    window: Duration,
    /// How many pairs of trials, with and without the cause
    #[arg(long, value_name = "N", default_value_t = 5)]
    pairs: u32,
    /// Use clients that limit their own load: thirty that think for 20 ms, or eight that ask 400
    /// times a second together
    #[arg(long, value_parser = load(), value_name = "LOAD")]
    load: Option<OtherLoad>,
    /// Keep another cause present all the time, with this one and without it
    #[arg(long, value_parser = cause, value_name = "CAUSE")]
    beside: Option<&'static Cause>,
    /// Also write what the checks with the cause saw, and what the trials measured, to judge predictions by
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let (release, dose) = (args.engine, args.dose);
    if !args.cause.engines.contains(&release.engine) || !args.cause.has(dose) {
        let why = args.cause.impossible(release, dose).unwrap_or_default();
        return Err(Usage(format!("{} on {}: {why}", args.cause.id, release.id)).into());
    }
    let variant = Variant { load: args.load, beside: args.beside };
    if let Some(why) = variant.impossible(release.engine) {
        return Err(Usage(format!("{} on {}: {why}", args.cause.id, release.id)).into());
    }
    let method = Method { window: args.window, pairs: args.pairs, dose, variant };
    let _turn = Turn::wait()?;
    let _announced = Announced::begin("lab");
    let (result, windows) = trial::record(args.cause, release, method, state, say)?;
    if let Some(file) = &args.record {
        let recorded = Recorded::new(result.clone(), windows, is_of_scene);
        super::recording::write(&recorded, file)?;
    }
    if let Err(error) = state.save_run(&result.run, &result) {
        say(&format!("untax: this run is not saved: {error:#}"));
    }
    if args.json {
        print_json(&result)?;
    } else {
        print(&terminal::lab(&result, style()))?;
    }
    Ok(if result.as_expected() { Outcome::Clean } else { Outcome::Findings })
}
