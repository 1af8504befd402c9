//! The arguments that all families have.

use super::guard::Guard;
use super::placement::Placement;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;
use untax_core::units::duration;

/// What a bench may take by default, and with `--quick`.
const USUAL: Duration = Duration::from_secs(600);
const QUICK: Duration = Duration::from_secs(180);

/// The arguments that all families have.
// Without a group: its name would be that of a family's own arguments.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Arguments {
    /// Take at most 3 minutes: fewer cells, unless named by --workloads, and shorter trials
    #[arg(long)]
    pub quick: bool,
    /// Time to spend, first on every cell, then where intervals are widest [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// Work to measure, or 'all' [default: the most telling]; --list names what there is
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub workloads: Vec<String>,
    /// Arms to compare; the baseline is always among them [default: all that run here]
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub arms: Vec<String>,
    /// Where servers and clients run [default: depends on the work]. Without pinning, results may
    /// fall into two groups, up to five times apart, because a request may wait until an idle CPU
    /// is awake
    #[arg(long, value_name = "PLACE,…", value_delimiter = ',', value_parser = placement())]
    pub pin: Vec<Placement>,
    /// Length of one trial in seconds [default: depends on the work]
    #[arg(long, value_name = "TIME", value_parser = trial)]
    pub trial: Option<Duration>,
    /// Blocks of each cell at most, a block being one trial of every arm [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub blocks: Option<u32>,
    /// Fail (exit code 1) where a ratio is surely beyond a bound, as in 'runc/host < 0.95' or
    /// 'redis-get:runc/host < 0.95'
    #[arg(long, value_name = "GUARD")]
    pub(crate) fail_if: Vec<Guard>,
    /// Also write the result as XML of `JUnit`
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Form of the output; --json overrides it
    #[arg(long, value_name = "FORMAT", default_value = "screen")]
    #[arg(value_parser = ["screen", "markdown"])]
    pub format: String,
    /// Go on with the trials that the last bench of this kind saved
    #[arg(long)]
    pub resume: bool,
    /// Run beside busy databases and other programs; the result notes this
    #[arg(long)]
    pub beside: bool,
    /// List the arms and the work, and why some cannot run here; measure nothing
    #[arg(long)]
    pub list: bool,
    /// The seed of the order of trials [default: from the clock; printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

fn placement() -> impl TypedValueParser<Value = Placement> {
    let ids = Placement::ALL.map(Placement::id);
    PossibleValuesParser::new(ids).try_map(|id| Placement::from_id(&id).ok_or("no such place"))
}

fn trial(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    let lengths = Duration::from_millis(100)..=Duration::from_secs(3600);
    lengths.contains(&length).then_some(length).ok_or("a trial is 100ms to 1h long".to_owned())
}

impl Arguments {
    /// The time to spend.
    pub(super) fn time(&self) -> Duration {
        self.budget.unwrap_or(if self.quick { QUICK } else { USUAL })
    }

    /// What the order is drawn from: short enough to be typed again.
    pub(super) fn drawn_seed(&self) -> u64 {
        let clock = || u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs());
        self.seed.unwrap_or_else(clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        common: Arguments,
    }

    fn arguments(line: &str) -> Result<Arguments, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(line.common)
    }

    #[test]
    fn a_bench_takes_ten_minutes_or_three_or_what_is_said() {
        let time = |line| arguments(line).unwrap().time();
        assert_eq!(time(""), Duration::from_secs(600));
        assert_eq!(time("--quick"), Duration::from_secs(180));
        assert_eq!(time("--quick --budget 90s"), Duration::from_secs(90));
    }

    #[test]
    fn lists_are_understood_and_nonsense_is_refused() {
        let line = arguments("--arms a,b --pin one-cpu,none --fail-if a/b<0.9").unwrap();
        assert_eq!((line.arms.len(), line.pin), (2, vec![Placement::OneCpu, Placement::None]));
        assert_eq!(line.fail_if.len(), 1);
        for wrong in [
            "--pin all",
            "--budget 10",
            "--trial 1ms",
            "--blocks 0",
            "--fail-if a<1",
            "--format html",
        ] {
            assert!(arguments(wrong).is_err(), "{wrong}");
        }
    }
}
