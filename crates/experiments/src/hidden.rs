//! Finds the hidden subcommand that this process was started for.

use crate::calibrate::CALIBRATE;
use crate::list::EXPERIMENTS;
use std::ffi::OsString;
use std::process::ExitCode;
use untax_changes::guard;

/// Runs a hidden subcommand if the arguments (the program's name first) ask for one: that of the
/// guard, of the calibration or of a bench. Every program that is used as an
/// [`untax_changes::Program`] calls this first of all.
pub fn run_hidden(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(code) = guard::main(arguments.iter().cloned()) {
        return Some(code);
    }
    let mut arguments = arguments.into_iter().skip(1);
    let name = arguments.next()?;
    let benches = EXPERIMENTS.iter().flat_map(|experiment| experiment.children);
    let mut known = benches.chain([&CALIBRATE]);
    let command = known.find(|command| name == command.name)?;
    Some(match command.main(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("untax {}: {error}", command.name);
            ExitCode::from(2)
        }
    })
}
