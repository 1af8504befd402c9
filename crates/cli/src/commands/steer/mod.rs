//! `untax steer`.

mod args;
pub mod choice;
mod run;
mod status;

pub use args::Args;

use crate::Outcome;
use crate::state::State;
use args::Action;

/// Everything that is printed as JSON.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "stands for all of them in the schema")]
enum Printed<'a> {
    Line(Box<untax_steer::event::Line>),
    Status(Box<status::Shown>),
    Ended(status::Ended),
    Proposal(run::Proposal<'a>),
}

/// The JSON Schema of what is printed.
pub fn schema() -> schemars::Schema {
    crate::json_schema::of::<Printed>()
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    match &args.command {
        None => run::run(args, state),
        Some(Action::Status { json }) => status::show(*json, state),
        Some(Action::Stop { json }) => status::stop(*json, state),
    }
}
