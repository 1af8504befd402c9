//! `untax lab matrix`.

use super::trial::{self, Method};
use super::{cause, dose, engine};
use crate::Outcome;
use crate::observe::duration;
use crate::screen::{print, print_json, say, style, write_file};
use crate::state::State;
use anyhow::Context;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use untax_core::lab::{LabMatrix, LabRun, MATRIX_SCHEMA, Skipped, is_none};
use untax_host::Host;
use untax_lab::{CAUSES, Cause, Dose, Engine, Turn};
use untax_report::{html, terminal};

/// Arguments of `untax lab matrix`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  untax lab matrix -o lab\n  \
                  untax lab matrix --repeats 5 --causes none,cpu-throttled --engines postgres -o lab")]
pub struct Args {
    /// How often to run each cause on each engine
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    /// Only these causes; none is always among them
    #[arg(long, value_name = "CAUSE,…", value_delimiter = ',', value_parser = cause)]
    causes: Vec<&'static Cause>,
    /// Only these engines
    #[arg(long, value_parser = engine(), value_name = "ENGINE,…", value_delimiter = ',')]
    engines: Vec<Engine>,
    /// How much of the cause: mild ones take about as much as platforms do
    #[arg(long, value_parser = dose(), value_name = "DOSE", default_value = "strong")]
    dose: Dose,
    /// How long to watch in each check, and in each trial, which is checked too
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    window: Duration,
    /// How many pairs of trials in each
    #[arg(long, value_name = "N", default_value_t = 2)]
    pairs: u32,
    /// The seed of the order; the same gives the same order
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The directory for matrix.json and matrix.html
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// One thing to do.
type Task = (&'static Cause, Engine);

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make {}", args.output.display()))?;
    let (tasks, skipped) = tasks(args);
    let facts = untax_host::facts::read_all(&Host::live());
    let mut matrix = LabMatrix {
        schema: MATRIX_SCHEMA.to_owned(),
        run: State::new_run("lab-matrix"),
        taken_at: Timestamp::now(),
        cpu_model: facts.cpu.value().map(|cpu| cpu.model.clone()).unwrap_or_default(),
        kernel_release: facts.kernel.value().map(|k| k.release.clone()).unwrap_or_default(),
        seed: args.seed,
        complete: false,
        runs: Vec::new(),
        skipped,
    };
    let method = Method { window: args.window, pairs: args.pairs, dose: args.dose };
    let path = args.output.join("matrix.json");
    let saved: Option<LabMatrix> = state.load_run(&path.to_string_lossy()).ok();
    let alike = |saved: &LabMatrix| {
        !saved.complete && is_alike(saved, &matrix, method) && built_before(saved.taken_at)
    };
    matrix.runs = saved.filter(alike).map(|saved| saved.runs).unwrap_or_default();
    let done = matrix.runs.iter().map(|run| (run.cause.as_str(), run.engine.as_str()));
    let tasks = missing(tasks, done);
    if !matrix.runs.is_empty() {
        say(&format!("going on with {}: {} done", path.display(), matrix.runs.len()));
    }
    let begun = Instant::now();
    for (done, (cause, engine)) in tasks.iter().enumerate() {
        let left = left(begun.elapsed(), done, tasks.len(), method);
        let place =
            format!("{}/{}, about {} min left", done + 1, tasks.len(), left.as_secs() / 60 + 1);
        say(&format!("{place}: {} on {}", cause.id, engine.id()));
        // Others may want the machine too: the turn is given back between causes.
        let _turn = Turn::wait()?;
        match trial::run(cause, *engine, method, state, |_| ()) {
            Ok(run) => matrix.runs.push(run),
            Err(error) => matrix.skipped.push(skip(cause, *engine, format!("{error:#}"))),
        }
        save(&matrix, &args.output)?;
    }
    matrix.complete = true;
    save(&matrix, &args.output)?;
    write_file(&args.output.join("matrix.html"), &html::lab(&matrix))?;
    if args.json {
        print_json(&matrix)?;
    } else {
        print(&terminal::lab_matrix(&matrix, style()))?;
    }
    let expected = matrix.runs.iter().all(LabRun::as_expected);
    Ok(if expected { Outcome::Clean } else { Outcome::Findings })
}

/// What is to be done in random order, and what this machine cannot do.
fn tasks(args: &Args) -> (Vec<Task>, Vec<Skipped>) {
    let engines = if args.engines.is_empty() { &Engine::ALL[..] } else { &args.engines };
    let (mut tasks, mut skipped) = (Vec::new(), Vec::new());
    let chosen = |cause: &&&Cause| {
        args.causes.is_empty() || cause.id == "none" || args.causes.iter().any(|c| c.id == cause.id)
    };
    for cause in CAUSES.iter().collect::<Vec<_>>().iter().filter(chosen) {
        for engine in engines {
            match cause.impossible(*engine, args.dose) {
                None => tasks.extend((0..args.repeats).map(|_| (*cause, *engine))),
                Some(why) => skipped.push(skip(cause, *engine, why)),
            }
        }
    }
    fastrand::Rng::with_seed(args.seed).shuffle(&mut tasks);
    (tasks, skipped)
}

/// Whether runs of the one matrix may stand in the other: same order, machine and method.
fn is_alike(one: &LabMatrix, other: &LabMatrix, method: Method) -> bool {
    let what = |m: &LabMatrix| (m.seed, m.cpu_model.clone(), m.kernel_release.clone());
    let so = |run: &LabRun| {
        let (window, pairs) = (Duration::try_from_secs_f64(run.window_s), run.with_per_s.len());
        let asked = if is_none(&run.cause) { 0 } else { method.pairs as usize };
        window.is_ok_and(|window| window == method.window)
            && pairs == asked
            && run.dose == method.dose.id()
    };
    what(one) == what(other) && one.runs.iter().all(so)
}

/// Whether this program was there at that time: another build may find other things.
fn built_before(moment: Timestamp) -> bool {
    let built = std::env::current_exe().and_then(|program| program.metadata()?.modified());
    built.is_ok_and(|built| Timestamp::try_from(built).is_ok_and(|built| built <= moment))
}

/// The tasks but for those done, by the ids of their cause and engine, in the same order.
fn missing<'a>(tasks: Vec<Task>, done: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Task> {
    let mut done: Vec<(&str, &str)> = done.collect();
    let is_missing = |(cause, engine): &Task| {
        let place = done.iter().position(|ids| *ids == (cause.id, engine.id()));
        place.map(|place| done.swap_remove(place)).is_none()
    };
    tasks.into_iter().filter(is_missing).collect()
}

fn skip(cause: &Cause, engine: Engine, why: String) -> Skipped {
    Skipped { cause: cause.id.to_owned(), engine: engine.id().to_owned(), why }
}

/// What is left, by what those before took.
fn left(elapsed: Duration, done: usize, total: usize, method: Method) -> Duration {
    let each = match u32::try_from(done) {
        Ok(done) if done > 0 => elapsed / done,
        _ => method.estimate(),
    };
    each * u32::try_from(total - done).unwrap_or(u32::MAX)
}

fn save(matrix: &LabMatrix, directory: &Path) -> anyhow::Result<()> {
    let path = directory.join("matrix.json");
    let json = serde_json::to_string_pretty(matrix).context("cannot write the result as JSON")?;
    let saved = path.with_extension("json.new");
    std::fs::write(&saved, json + "\n").with_context(|| saved.display().to_string())?;
    std::fs::rename(&saved, &path).with_context(|| path.display().to_string())
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

    fn args(line: &str) -> Args {
        let words = std::iter::once("matrix").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().args
    }

    #[test]
    fn none_is_always_among_the_causes_and_the_order_follows_the_seed() {
        let args = args("--causes cpu-throttled --engines postgres,redis --repeats 4 -o x");
        let ids = |args: &Args| {
            let (tasks, skipped) = tasks(args);
            let skipped = skipped.iter().map(|s| (s.cause.clone(), s.engine.clone()));
            let ids = tasks.iter().map(|(c, e)| (c.id.to_owned(), e.id().to_owned()));
            (ids.collect::<Vec<_>>(), skipped.collect::<Vec<_>>())
        };
        assert_eq!(ids(&args), ids(&args));
        let (tasks, skipped) = ids(&args);
        // Two causes on two engines; without root they are skipped, with a reason.
        assert_eq!(tasks.len() / 4 + skipped.len(), 4);
        assert!(tasks.iter().chain(&skipped).any(|(cause, _)| cause == "none"));
    }

    #[test]
    fn what_was_done_is_not_done_again() {
        let task = |id| (Cause::find(id).unwrap(), Engine::Postgres);
        let tasks = ["none", "io-hang", "none", "none"].map(task).to_vec();
        let done = [("none", "postgres"), ("io-hang", "mysql"), ("none", "postgres")];
        let left = missing(tasks, done.into_iter());
        assert_eq!(left.iter().map(|(c, _)| c.id).collect::<Vec<_>>(), ["io-hang", "none"]);
    }

    #[test]
    fn the_time_left_follows_from_the_time_taken() {
        let method = Method { window: Duration::from_secs(5), pairs: 0, dose: Dose::Strong };
        let second = Duration::from_secs(1);
        assert_eq!(left(second * 60, 2, 10, method), second * 240);
        assert_eq!(left(Duration::ZERO, 0, 2, method), second * 60);
    }
}
