//! `untax bench pages`.

use crate::page_costs::CALIBRATION;
use crate::screen::{print, print_json, say, style, write_file};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use untax_changes::{Lock, Program, Tree, recover};
use untax_core::bench::PagesBench;
use untax_experiments::pages::{self, Access, BenchError, Model, Page, Refusal, Request};
use untax_experiments::{Bench, Interrupt, Machine, Observer, Progress, calibrate, own_cgroup};
use untax_host::Host;
use untax_report::{html, terminal};

/// Trials from which an interval is worth the name.
const TRIALS: &str = "7";

/// How often progress is told where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Arguments of `untax bench pages`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  untax bench pages                              4k against 2m, some minutes\n  \
                  untax bench pages --pages 4k,2m,1g,thp --html pages.html\n  \
                  untax bench pages --rows 100000000 --row-bytes 128 --access direct"
)]
pub struct Args {
    /// Rows of each table [default: as many of each width as fit a quarter of the available
    /// memory, at most 8 GiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// Widths of rows in bytes; one table each
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', default_value = "128,8192,16384")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    row_bytes: Vec<u64>,
    /// Page sizes to compare; each is compared with the smallest
    #[arg(long, value_name = "PAGE,…", value_delimiter = ',', default_value = "4k,2m")]
    #[arg(value_parser = page())]
    pages: Vec<Page>,
    /// Numbers of readers at once [default: 1, 2, 4, … up to twice the CPUs]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: Vec<u32>,
    /// What a connection is: a process with its own page tables, or a thread
    #[arg(long, default_value = "process", value_parser = model())]
    model: Model,
    /// How a row is found: by a hash index as a database would, or by its number
    #[arg(long, default_value = "hash", value_parser = access())]
    access: Access,
    /// Trials of every combination
    #[arg(long, value_name = "N", default_value = TRIALS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: u32,
    /// Length of one trial in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    trial_seconds: Duration,
    /// What keys and the order of trials are drawn from [default: from the clock; printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Also write the result as a self-contained web page with figures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn page() -> impl TypedValueParser<Value = Page> {
    let names = Page::ALL.map(Page::id);
    PossibleValuesParser::new(names).try_map(|id| Page::from_id(&id).ok_or("no such page"))
}

fn model() -> impl TypedValueParser<Value = Model> {
    PossibleValuesParser::new([Model::Process.id(), Model::Thread.id()])
        .map(|id| if id == Model::Thread.id() { Model::Thread } else { Model::Process })
}

fn access() -> impl TypedValueParser<Value = Access> {
    PossibleValuesParser::new([Access::Hash.id(), Access::Direct.id()])
        .map(|id| if id == Access::Direct.id() { Access::Direct } else { Access::Hash })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text} is not a number of seconds"))?;
    if (0.01..=3600.0).contains(&number) {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err("a trial takes between 0.01 and 3600 seconds".to_owned())
    }
}

/// 1, 2, 4, … up to twice the CPUs.
fn default_connections() -> Vec<u32> {
    let most = std::thread::available_parallelism().map_or(2, |cpus| 2 * cpus.get() as u32);
    std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n <= most).collect()
}

impl Args {
    fn request(&self) -> Request {
        let connections = match self.connections.as_slice() {
            [] => default_connections(),
            given => given.to_vec(),
        };
        Request {
            rows: self.rows,
            row_bytes: self.row_bytes.clone(),
            pages: self.pages.clone(),
            connections,
            model: self.model,
            access: self.access,
            trials: self.trials,
            trial: self.trial_seconds,
            seed: self.seed.unwrap_or_else(seed_from_clock),
        }
    }
}

/// A seed short enough to be typed again.
fn seed_from_clock() -> u64 {
    u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs())
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    let directory = state.directory()?;
    let lock = Lock::to_bench(directory)?;
    for file in recover(&lock, directory, &Tree::live())? {
        say(&format!(
            "untax: restored {file}: an earlier bench was killed together with its guard"
        ));
    }
    let run = State::new_run("bench-pages");
    let interrupt = Interrupt::by_signals().context("cannot listen for signals")?;
    let facts = untax_host::facts::read_all(&Host::live());
    let cgroup = own_cgroup(&facts);
    let bench = Bench {
        program: &Program::this(),
        tree: &Tree::live(),
        state: directory,
        lock: &lock,
        machine: &Machine::of(&facts),
        cgroup: cgroup.as_ref(),
        run: &run,
        calibration: Some(calibrate::FULL),
        interrupt,
    };
    let mut screen = Screen::new(state, &run);
    let result = pages::run(&args.request(), &bench, &mut screen);
    screen.bar.finish_and_clear();
    finish(args, state, &result.map_err(usage)?)
}

/// A request that makes no sense is the user's to mend.
fn usage(error: BenchError) -> anyhow::Error {
    match error {
        BenchError::Refused(Refusal::Senseless(what)) => Usage(what.to_owned()).into(),
        other => other.into(),
    }
}

fn finish(args: &Args, state: &State, result: &PagesBench) -> anyhow::Result<Outcome> {
    let saved = state.save_run(&result.run, result);
    let calibration = result.calibration.as_ref().filter(|_| result.complete);
    let kept = calibration.map_or(Ok(()), |calibration| state.save(CALIBRATION, calibration));
    let page = args.html.as_ref().map_or(Ok(()), |path| write_file(path, &html::pages(result)));
    if args.json {
        print_json(result)?;
    } else {
        print(&terminal::pages(result, style()))?;
    }
    // Last, so that a full disk does not cost the user the result.
    let path = saved?;
    kept?;
    page?;
    if !result.complete {
        bail!("interrupted; the trials done so far are saved as {}", path.display());
    }
    Ok(Outcome::Clean)
}

/// Shows progress on standard error, and saves what there is after every trial.
struct Screen<'a> {
    state: &'a State,
    run: &'a str,
    bar: ProgressBar,
    told: Instant,
    failed_to_save: bool,
}

impl<'a> Screen<'a> {
    fn new(state: &'a State, run: &'a str) -> Self {
        // Hidden by itself where standard error is no terminal.
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {prefix} left  {msg}")
        {
            bar.set_style(style);
        }
        let told = Instant::now();
        Self { state, run, bar, told, failed_to_save: false }
    }
}

impl Observer<PagesBench> for Screen<'_> {
    fn progress(&mut self, progress: &Progress) {
        let Progress { done, total, doing, left } = progress;
        let left = short(*left);
        if self.bar.is_hidden() {
            if self.told.elapsed() >= LINE_EVERY {
                self.told = Instant::now();
                say(&format!("{done}/{total} trials, about {left} left: {doing}"));
            }
            return;
        }
        self.bar.set_length(u64::from(*total));
        self.bar.set_position(u64::from(*done));
        self.bar.set_prefix(left);
        self.bar.set_message(doing.clone());
    }

    fn partial(&mut self, result: &PagesBench) {
        // Said once: the next trials would fail alike.
        if let Err(error) = self.state.save_run(self.run, result)
            && !std::mem::replace(&mut self.failed_to_save, true)
        {
            self.bar.suspend(|| say(&format!("untax: the result so far is not saved: {error:#}")));
        }
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
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn request(line: &str) -> Result<Request, String> {
        let words = std::iter::once("untax").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args.request()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_said_has_a_sensible_value() {
        let request = request("").unwrap();
        assert_eq!(request.rows, None);
        assert_eq!(request.row_bytes, [128, 8192, 16384]);
        assert_eq!(request.pages, [Page::Small, Page::Huge]);
        assert_eq!(request.connections[0], 1);
        assert_eq!((request.model, request.access), (Model::Process, Access::Hash));
        assert_eq!((request.trials, request.trial), (7, Duration::from_secs(1)));
    }

    #[test]
    fn lists_and_names_are_understood() {
        let line = "--rows 5 --row-bytes 100,7 --pages 1g,thp,4k --connections 3,64 --seed 9 \
                    --model thread --access direct --trials 2 --trial-seconds 0.25";
        let request = request(line).unwrap();
        assert_eq!((request.rows, request.row_bytes), (Some(5), vec![100, 7]));
        assert_eq!(request.pages, [Page::Gigantic, Page::Transparent, Page::Small]);
        assert_eq!((request.connections, request.seed), (vec![3, 64], 9));
        assert_eq!((request.model, request.access), (Model::Thread, Access::Direct));
        assert_eq!((request.trials, request.trial), (2, Duration::from_millis(250)));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "--pages 5k",
            "--rows 0",
            "--row-bytes 0",
            "--connections 0",
            "--trials 0",
            "--trial-seconds 0",
            "--trial-seconds NaN",
            "--model fork",
            "--access index",
        ] {
            assert!(request(line).is_err(), "{line}");
        }
    }

    #[test]
    fn times_are_short() {
        assert_eq!(short(Duration::from_secs(59)), "59 s");
        assert_eq!(short(Duration::from_secs(250)), "4 min 10 s");
    }
}
