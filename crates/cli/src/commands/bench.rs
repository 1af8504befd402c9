//! `untax bench`: the experiments, each with its own arguments and those that all have.

use crate::page_costs::StatePageCosts;
use crate::screen::{print, say, style, write_file};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::{Context as _, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use untax_changes::Announced;
use untax_core::Calibration;
use untax_experiments::{
    BenchResult, Context, EXPERIMENTS, Ending, Experiment, ExperimentError, Listener, Progress,
};
use untax_report::format::clean_json;

/// How often progress is told where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

// The arguments that every experiment has. clap would take a doc comment here for the help of each
// experiment's command.
#[derive(Debug, Args)]
struct Common {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Also write the result as a self-contained web page with figures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// An experiment with its arguments.
#[derive(Debug)]
pub struct Bench {
    experiment: &'static Experiment,
    own: ArgMatches,
    common: Common,
}

impl Subcommand for Bench {
    fn augment_subcommands(command: Command) -> Command {
        let commands = EXPERIMENTS
            .iter()
            .map(|experiment| Common::augment_args((experiment.command)().name(experiment.id)));
        command.subcommands(commands)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Experiment::find(name).is_some()
    }
}

impl FromArgMatches for Bench {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let chosen = matches.subcommand();
        let found = chosen.and_then(|(id, own)| Some((Experiment::find(id)?, own)));
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (experiment, own) = found.ok_or_else(missing)?;
        Ok(Self { experiment, own: own.clone(), common: Common::from_arg_matches(own)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Runs the command.
pub fn run(bench: &Bench, state: &State) -> anyhow::Result<Outcome> {
    let Bench { experiment, own, common } = bench;
    let run = State::new_run(&format!("bench-{}", experiment.id));
    let _announced = Announced::begin("bench");
    let mut screen = Screen::new(state, &run);
    let mut context = Context { state: state.directory()?, run: &run, listener: &mut screen };
    let result = (experiment.run)(own, &mut context);
    screen.bar.finish_and_clear();
    let result = result.map_err(|error| match error {
        ExperimentError::Usage(what) => Usage(what).into(),
        other => anyhow::Error::from(other),
    })?;
    let saved = save(state, &run, &*result);
    let part = common.html.as_ref().map(|path| write_file(path, &result.html().page()));
    if common.json {
        print(&(clean_json(&json(&*result)?) + "\n"))?;
    } else {
        print(&result.terminal(style()))?;
    }
    // Last, so that a full disk does not cost the user the result.
    let path = saved?;
    screen.calibration?;
    part.transpose()?;
    match result.ending() {
        Ending::Clean => Ok(Outcome::Clean),
        Ending::GuardFailed => Ok(Outcome::Findings),
        Ending::Interrupted => {
            bail!("interrupted; what was done so far is saved as {}", path.display())
        }
    }
}

fn save(state: &State, run: &str, result: &dyn BenchResult) -> anyhow::Result<PathBuf> {
    state.save_json(run, &json(result)?)
}

fn json(result: &dyn BenchResult) -> anyhow::Result<String> {
    result.json().context("cannot write the result as JSON")
}

/// Shows progress on standard error, and saves what there is after every trial.
struct Screen<'a> {
    state: &'a State,
    run: &'a str,
    bar: ProgressBar,
    last_line: Instant,
    failed_to_save: bool,
    /// Whether a calibration was kept, when the bench made one.
    calibration: anyhow::Result<()>,
}

impl<'a> Screen<'a> {
    fn new(state: &'a State, run: &'a str) -> Self {
        // Hidden by itself where standard error is no terminal.
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {prefix} left  {msg}")
        {
            bar.set_style(style);
        }
        let last_line = Instant::now();
        Self { state, run, bar, last_line, failed_to_save: false, calibration: Ok(()) }
    }
}

impl Listener for Screen<'_> {
    fn progress(&mut self, progress: &Progress) {
        let Progress { done, total, doing, left } = progress;
        let left = short(*left);
        if self.bar.is_hidden() {
            if self.last_line.elapsed() >= LINE_EVERY {
                self.last_line = Instant::now();
                say(&format!("{done} of {total}, about {left} left: {doing}"));
            }
            return;
        }
        self.bar.set_length(u64::from(*total));
        self.bar.set_position(u64::from(*done));
        self.bar.set_prefix(left);
        self.bar.set_message(doing.clone());
    }

    fn partial(&mut self, result: &dyn BenchResult) {
        // Said once: the next trials would fail alike.
        if let Err(error) = save(self.state, self.run, result)
            && !std::mem::replace(&mut self.failed_to_save, true)
        {
            self.bar.suspend(|| say(&format!("untax: the result so far is not saved: {error:#}")));
        }
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| say(&format!("untax: {text}")));
    }

    fn calibrated(&mut self, calibration: &Calibration) {
        self.calibration = StatePageCosts(self.state).replace(calibration).map(|older| {
            let older = older.map_or(String::new(), |path| {
                format!("; the one they used is kept as {}", path.display())
            });
            self.note(&format!("checks now use the calibration of this bench{older}"));
        });
    }
}

/// `4 min 10 s`.
fn short(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(short(Duration::from_secs(59)), "59 s");
        assert_eq!(short(Duration::from_secs(250)), "4 min 10 s");
    }
}
