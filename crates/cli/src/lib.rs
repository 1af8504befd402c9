//! The command line: arguments, dispatch and exit codes.

mod args;
mod asking;
mod child_commands;
mod commands;
mod duration;
mod job_control;
pub mod json_schema;
mod kept;
mod nearest;
mod needs;
mod outcome;
mod page_costs;
mod progress;
mod recording;
mod run_names;
pub mod schemas;
mod screen;
mod state;
mod version;
mod watching;

use args::{Args, Command, Lab};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use outcome::{Outcome, Usage};
use std::io::Write;
use std::process::ExitCode;

/// Exit codes that users script against.
const FINDINGS: u8 = 1;
const COULD_NOT: u8 = 2;
const BAD_USAGE: u8 = 3;

/// The definition of the command line, for documentation and completions.
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program.
pub fn main() -> ExitCode {
    if let Some(code) = child_commands::run() {
        return code;
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return refuse(&error),
    };
    match run(args) {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(FINDINGS),
        Err(error) => {
            let usage = error.is::<Usage>();
            // The chain, printed once: each error's text leaves its source to the next.
            let _ = writeln!(anstream::stderr(), "untax: {error:#}");
            ExitCode::from(if usage { BAD_USAGE } else { COULD_NOT })
        }
    }
}

fn run(args: Args) -> anyhow::Result<Outcome> {
    let state = state::State::new(args.state_dir);
    match args.command {
        Command::Check(args) => commands::check::run(&args, &state),
        Command::Watch(args) => commands::watch::run(&args, &state),
        Command::Agent(args) => commands::agent::run(&args, &state),
        Command::Fleet(args) => commands::fleet::run(&args),
        Command::Timeline(args) => commands::timeline::run(&args, &state),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Plan(args) => commands::plan::run(&args, &state),
        Command::Apply(args) => commands::apply::run(&args, &state),
        Command::Undo(args) => commands::undo::run(&args, &state),
        Command::Verify(args) => commands::verify::run(&args, &state),
        Command::Compare(args) => commands::compare::run(&args, &state),
        Command::Report(args) => commands::report::run(&args, &state),
        Command::Steer(args) => commands::steer::run(&args, &state),
        Command::Advise(args) => commands::advise::run(&args, &state),
        Command::Bench(bench) => commands::bench::run(&bench, &state),
        Command::Capture(args) => commands::capture::run(&args, &state),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Runs(args) => commands::runs::run(&args, &state),
        Command::Completions(args) => commands::completions::run(&args, command()),
        Command::Man(args) => commands::man::run(&args, command()),
        Command::Demo(args) => commands::demo::run(&args, &state),
        Command::Lab(Lab::List(args)) => commands::lab::list::run(&args),
        Command::Lab(Lab::Run(args)) => commands::lab::run::run(&args, &state),
        Command::Lab(Lab::Matrix(args)) => commands::lab::matrix::run(&args, &state),
    }
}

fn refuse(error: &clap::Error) -> ExitCode {
    // Writing help into a closed pipe is not an error of ours.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(BAD_USAGE),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_sound() {
        super::command().debug_assert();
    }
}
