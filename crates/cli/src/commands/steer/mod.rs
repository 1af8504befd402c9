//! `untax steer`.

mod args;
pub mod choice;
mod run;
mod status;

pub use args::Args;

use crate::Outcome;
use crate::state::State;
use args::Action;

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    match &args.command {
        None => run::run(args, state),
        Some(Action::Status { json }) => status::show(*json, state),
        Some(Action::Stop { json }) => status::stop(*json, state),
    }
}
