//! One result on each line.

use super::feed::{self, News};
use crate::Outcome;
use crate::commands::check::outcome;
use crate::screen::{print_line, say_all};
use crate::state::State;
use anyhow::Context;
use untax_core::Severity;
use untax_pipeline::Options;
use untax_report::format::clean_json;
use untax_trials::Interrupt;

/// Prints until interrupted, until so many were printed, or until nobody reads any more.
pub fn run(options: Options, count: Option<u64>, state: &State) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::by_signals().context("cannot listen for signals")?;
    let mut worst = Outcome::Clean;
    let mut printed = 0;
    feed::run(
        options,
        state,
        || interrupt.check().is_ok(),
        |news| {
            let (check, notes) = match news {
                News::Opened(_) => return Ok(true),
                News::Gap(why) => {
                    say_all(&[why]);
                    return Ok(true);
                }
                News::Checked(check, _, notes) => (check, notes),
            };
            say_all(&notes);
            if outcome(&check, Severity::Low) == Outcome::Findings {
                worst = Outcome::Findings;
            }
            let json = serde_json::to_string(&check).context("cannot write the result as JSON")?;
            let read = print_line(&clean_json(&json))?;
            printed += 1;
            Ok(read && count.is_none_or(|count| printed < count))
        },
    )?;
    Ok(worst)
}
