//! One result on each line, or none where windows are only recorded.

use super::feed::{self, News};
use crate::Outcome;
use crate::commands::check::outcome;
use crate::recording::Recording;
use crate::screen::{print_line, say_all};
use crate::state::State;
use anyhow::Context;
use untax_core::{Check, Severity};
use untax_pipeline::Options;
use untax_report::format::clean_json;
use untax_trials::Interrupt;

/// Prints, or only records, until interrupted, until there were so many, or until nobody reads any more.
pub fn run(
    options: Options,
    count: Option<u64>,
    prints: bool,
    recording: Option<Recording>,
    state: &State,
) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::by_signals().context("cannot listen for signals")?;
    let mut worst = Outcome::Clean;
    let mut printed = 0;
    feed::run(
        options,
        state,
        recording,
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
            printed += 1;
            let read = !prints || print_one(&check)?;
            Ok(read && count.is_none_or(|count| printed < count))
        },
    )?;
    Ok(worst)
}

/// Prints a check on a line; false when nobody reads any more.
fn print_one(check: &Check) -> anyhow::Result<bool> {
    let json = serde_json::to_string(check).context("cannot write the result as JSON")?;
    print_line(&clean_json(&json))
}
