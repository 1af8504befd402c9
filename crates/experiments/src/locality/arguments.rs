//! The arguments of `untax bench locality`.

use super::guard::Guard;
use std::time::Duration;
use untax_core::units::duration;

/// What the bench takes by default, and with `--quick`.
const USUAL: Duration = Duration::from_secs(480);
const QUICK: Duration = Duration::from_secs(120);

/// Change a database step by step, and see whether untax timeline finds and names each change
///
/// A PostgreSQL under pgbench with little processor time and its tables on a slow disk. Then it gets more time, and its
/// tablespaces move one by one to a fast disk, as data that becomes local after a move to another host. Windows are
/// recorded meanwhile; the result puts what was done beside what the timeline says of it.
#[derive(Debug, clap::Parser)]
#[group(id = "locality")]
#[command(
    after_help = "Examples:\n  untax bench locality                           four changes, 8 minutes\n  \
                  untax bench locality --quick --html why.html   2 minutes, and a page with the figure\n  \
                  untax bench locality --fail-if 'named < 4' --fail-if 'others > 0'"
)]
pub(super) struct Arguments {
    /// Take about 2 minutes, with windows of 3 seconds
    #[arg(long)]
    quick: bool,
    /// Time to spend: 2m at least [default: 8m]
    #[arg(long, value_name = "TIME", value_parser = budget)]
    budget: Option<Duration>,
    /// Fail (exit code 1) where a count is so: found or named steps of 4, or others, changes that nobody made
    #[arg(long, value_name = "GUARD")]
    pub(super) fail_if: Vec<Guard>,
    /// Run beside busy databases, which is noted in the result
    #[arg(long)]
    pub(super) beside: bool,
}

fn budget(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let times = QUICK..=Duration::from_secs(24 * 3600);
    times.contains(&time).then_some(time).ok_or("this bench takes 2m to 24h".to_owned())
}

impl Arguments {
    /// The time to spend.
    pub(super) fn time(&self) -> Duration {
        self.budget.unwrap_or(if self.quick { QUICK } else { USUAL })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn arguments(line: &str) -> Result<Arguments, String> {
        let words = std::iter::once("locality").chain(line.split_whitespace());
        Arguments::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn it_takes_eight_minutes_or_two_or_what_is_said() {
        let time = |line| arguments(line).unwrap().time().as_secs();
        assert_eq!((time(""), time("--quick"), time("--quick --budget 3m")), (480, 120, 180));
    }

    #[test]
    fn what_is_too_short_to_tell_is_refused() {
        for wrong in ["--budget 90s", "--budget x", "--fail-if named", "--fail-if known<4"] {
            assert!(arguments(wrong).is_err(), "{wrong}");
        }
        assert_eq!(arguments("--fail-if named<4 --fail-if others>0").unwrap().fail_if.len(), 2);
    }
}
