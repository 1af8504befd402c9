//! `untax advise`.

use super::check::{self, Saved};
use crate::screen::{print, print_json, say, style};
use crate::state::State;
use crate::watching::{Watching, observe};
use crate::{Outcome, kept};
use untax_core::advice::{Advice, DatabaseAdvice};
use untax_core::{Check, Window};
use untax_experiments::advise::{Layer, advise};
use untax_host::Host;
use untax_report::terminal;
use untax_trials::Interrupt;

/// Arguments of `untax advise`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  untax bench runtime --quick           first: measures the alternatives here\n  \
                        untax advise runtime                  for every database, checked for ten seconds\n  \
                        untax advise storage --check @last    for those of the last check\n  \
                        untax advise network --check host.tar.gz --json"
)]
pub struct Args {
    /// Which layer to choose
    #[arg(value_enum)]
    layer: Layer,
    /// A check that was made: a saved run, its file, or a capture [default: check now]
    #[arg(long, visible_alias = "from", value_name = "RUN|FILE|CAPTURE")]
    #[arg(conflicts_with_all = ["which", "window"])]
    check: Option<String>,
    #[command(flatten)]
    watching: Watching,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let Saved { check, window } = match &args.check {
        Some(run) => check::load(run, state)?,
        None => watched(args, state)?,
    };
    let kept = kept::results(state, args.layer, &check.host);
    let advice = advise(args.layer, &check, &window, &kept);
    if args.json {
        print_json(&advice)?;
    } else {
        print(&terminal::advice(&advice, style()))?;
    }
    Ok(Outcome::Clean)
}

/// Checks now, and saves the check as `untax check` does.
fn watched(args: &Args, state: &State) -> anyhow::Result<Saved> {
    let observed = observe(
        args.watching.options()?,
        state,
        &Host::live(),
        &Host::live(),
        &Interrupt::default(),
    )?;
    let saved = Saved { check: observed.check(State::new_run("check")), window: observed.window };
    if let Err(error) = state.save_run(&saved.check.run, &saved) {
        say(&format!("untax: the check behind this advice is not saved: {error:#}"));
    }
    Ok(saved)
}

/// The advice for databases with prices, of every layer: a part of the plan of a check.
pub fn measured(check: &Check, window: &Window, state: &State) -> Vec<Advice> {
    let each = Layer::ALL.into_iter().filter_map(|layer| {
        let kept = kept::results(state, layer, &check.host);
        let mut advice = advise(layer, check, window, &kept);
        let is_priced = |database: &DatabaseAdvice| {
            database.choices.iter().any(|choice| choice.price.is_some())
        };
        advice.databases.retain(is_priced);
        (!advice.databases.is_empty()).then_some(advice)
    });
    each.collect()
}
