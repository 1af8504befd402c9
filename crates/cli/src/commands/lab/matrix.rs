//! `untax lab matrix`.

use super::trial::{self, Method};
use super::{cause, dose, release};
use crate::Outcome;
use crate::duration::duration;
use crate::screen::{print, print_json, say, style, write_file};
use crate::state::State;
use anyhow::{Context, bail};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use untax_changes::Announced;
use untax_core::lab::{Failed, LabMatrix, LabRun, MATRIX_SCHEMA, Skipped, is_none};
use untax_host::Host;
use untax_lab::{CAUSES, Cause, Dose, Variant};
use untax_report::{html, terminal};
use untax_scenes::{RELEASES, Release, Turn};

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
    /// Only these; without it the installed ones
    #[arg(long, value_parser = release(), value_name = "ENGINE,…", value_delimiter = ',')]
    engines: Vec<Release>,
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
type Task = (&'static Cause, Release);

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
        failed: Vec::new(),
        skipped,
    };
    let method = Method {
        window: args.window,
        pairs: args.pairs,
        dose: args.dose,
        variant: Variant::default(),
    };
    let path = args.output.join("matrix.json");
    let saved: Option<LabMatrix> = state.load_run(&path.to_string_lossy(), None).ok();
    (matrix.runs, matrix.failed) = earlier(saved, &matrix, method);
    let is_asked =
        |(cause, release): &Task, failed: &Failed| (cause.id, release.id) == failed.key();
    matrix.failed.retain(|failed| tasks.iter().any(|task| is_asked(task, failed)));
    let tasks = missing(tasks, matrix.runs.iter().map(LabRun::key));
    if matrix.tries() > 0 {
        let (done, failed) = (matrix.runs.len(), matrix.failed.len());
        say(&format!("going on with {}: {done} done, {failed} failed", path.display()));
    }
    let begun = Instant::now();
    for (done, (cause, release)) in tasks.iter().enumerate() {
        let left = left(begun.elapsed(), done, tasks.len(), method);
        let place =
            format!("{}/{}, about {} min left", done + 1, tasks.len(), left.as_secs() / 60 + 1);
        say(&format!("{place}: {} on {}", cause.id, release.id));
        // Others may want the machine too: the turn is given back between causes.
        let _turn = Turn::wait()?;
        let _announced = Announced::begin("lab");
        match trial::run(cause, *release, method, state, |_| ()) {
            Ok(run) => matrix.runs.push(run),
            Err(error) => {
                let why = format!("{error:#}");
                say(&format!("{} on {} failed: {why}", cause.id, release.id));
                matrix.fail(cause.id, release.id, why);
            }
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
    outcome(&matrix)
}

/// What the runs come to: those that failed are no better than those that did not find what they
/// should, and no result at all where there is no other.
fn outcome(matrix: &LabMatrix) -> anyhow::Result<Outcome> {
    match matrix.failed.first() {
        Some(Failed { cause, engine, why, .. }) if matrix.runs.is_empty() => {
            bail!("every run failed, {cause} on {engine} first: {why}")
        }
        _ if matrix.as_expected() == matrix.tries() => Ok(Outcome::Clean),
        _ => Ok(Outcome::Findings),
    }
}

/// What was done of the same matrix before it was interrupted: its runs, and those that failed,
/// which are tried again and yet remembered.
fn earlier(
    saved: Option<LabMatrix>,
    matrix: &LabMatrix,
    method: Method,
) -> (Vec<LabRun>, Vec<Failed>) {
    let alike = |saved: &LabMatrix| {
        // Runs alone tell by what method they were made.
        let has_runs = !saved.runs.is_empty();
        !saved.complete
            && has_runs
            && is_alike(saved, matrix, method)
            && built_before(saved.taken_at)
    };
    saved.filter(alike).map(|saved| (saved.runs, saved.failed)).unwrap_or_default()
}

/// What is to be done in random order, and what this machine cannot do.
fn tasks(args: &Args) -> (Vec<Task>, Vec<Skipped>) {
    let installed = || RELEASES.iter().copied().filter(|release| !release.is_unpacked).collect();
    let releases = if args.engines.is_empty() { installed() } else { args.engines.clone() };
    let (mut tasks, mut skipped) = (Vec::new(), Vec::new());
    let chosen = |cause: &&&Cause| {
        args.causes.is_empty() || cause.id == "none" || args.causes.iter().any(|c| c.id == cause.id)
    };
    for cause in CAUSES.iter().collect::<Vec<_>>().iter().filter(chosen) {
        for release in &releases {
            match cause.impossible(*release, args.dose) {
                None => tasks.extend((0..args.repeats).map(|_| (*cause, *release))),
                Some(why) => skipped.push(skip(cause, *release, why)),
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
        let pairs = run.with_per_s.len() + run.lost_pairs as usize;
        let window = Duration::try_from_secs_f64(run.window_s);
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
    let is_missing = |(cause, release): &Task| {
        let place = done.iter().position(|ids| *ids == (cause.id, release.id));
        place.map(|place| done.swap_remove(place)).is_none()
    };
    tasks.into_iter().filter(is_missing).collect()
}

fn skip(cause: &Cause, release: Release, why: String) -> Skipped {
    Skipped { cause: cause.id.to_owned(), engine: release.id.to_owned(), why }
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
    use serde_json::{Value, json};
    use untax_scenes::POSTGRES;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Args {
        let words = std::iter::once("matrix").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().args
    }

    const METHOD: Method = Method {
        window: Duration::from_secs(5),
        pairs: 0,
        dose: Dose::Strong,
        variant: Variant { load: None, beside: None },
    };

    const TIME: &str = r#"{"active_s": 1, "on_cpu_s": 1, "runnable_s": 0, "throttled_s": 0,
        "disk_s": 0, "reclaim_s": 0, "lock_s": 0, "network_s": 0, "idle_s": 0,
        "unaccounted_s": 0}"#;

    /// A run by that method.
    fn found(cause: &str) -> LabRun {
        let time: Value = serde_json::from_str(TIME).unwrap();
        let run = json!({
            "schema": "untax.lab/1",
            "run": "lab-1",
            "taken_at": "2026-01-01T00:00:00Z",
            "cause": cause,
            "engine": "postgres",
            "dose": "strong",
            "window_s": 5.0,
            "found": true,
            "found_without": false,
            "with_per_s": [],
            "without_per_s": [],
            "time": time,
            "time_without": time,
            "findings": [],
            "findings_without": [],
        });
        serde_json::from_value(run).unwrap()
    }

    fn nothing_done() -> LabMatrix {
        LabMatrix {
            schema: MATRIX_SCHEMA.to_owned(),
            run: "lab-matrix-1".to_owned(),
            taken_at: Timestamp::now(),
            cpu_model: String::new(),
            kernel_release: String::new(),
            seed: 1,
            complete: false,
            runs: Vec::new(),
            failed: Vec::new(),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn none_is_always_among_the_causes_and_the_order_follows_the_seed() {
        let args = args("--causes cpu-throttled --engines postgres,redis --repeats 4 -o x");
        let ids = |args: &Args| {
            let (tasks, skipped) = tasks(args);
            let skipped = skipped.iter().map(|s| (s.cause.clone(), s.engine.clone()));
            let ids = tasks.iter().map(|(c, e)| (c.id.to_owned(), e.id.to_owned()));
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
        let task = |id| (Cause::find(id).unwrap(), POSTGRES);
        let tasks = ["none", "io-hang", "none", "none"].map(task).to_vec();
        let done = [("none", "postgres"), ("io-hang", "mysql"), ("none", "postgres")];
        let left = missing(tasks, done.into_iter());
        assert_eq!(left.iter().map(|(c, _)| c.id).collect::<Vec<_>>(), ["io-hang", "none"]);
    }

    #[test]
    fn what_failed_is_tried_again_and_remembered() {
        let task = |id| (Cause::find(id).unwrap(), POSTGRES);
        let mut saved = nothing_done();
        saved.runs.push(found("io-hang"));
        saved.fail("disk-slow", "postgres", "killed".to_owned());
        let (runs, failed) = earlier(Some(saved.clone()), &nothing_done(), METHOD);
        assert_eq!((&runs, &failed), (&saved.runs, &saved.failed));
        let tasks = ["io-hang", "disk-slow"].map(task).to_vec();
        let left = missing(tasks, runs.iter().map(LabRun::key));
        assert_eq!(left.iter().map(|(c, _)| c.id).collect::<Vec<_>>(), ["disk-slow"]);
        saved.complete = true;
        assert_eq!(earlier(Some(saved), &nothing_done(), METHOD), (Vec::new(), Vec::new()));
    }

    #[test]
    fn where_runs_failed_not_all_is_as_expected() {
        let mut matrix = nothing_done();
        matrix.fail("disk-slow", "postgres", "killed".to_owned());
        let error = outcome(&matrix).unwrap_err().to_string();
        assert_eq!(error, "every run failed, disk-slow on postgres first: killed");
        matrix.runs.push(found("disk-slow"));
        assert_eq!(outcome(&matrix).unwrap(), Outcome::Findings);
        matrix.failed.clear();
        assert_eq!(outcome(&matrix).unwrap(), Outcome::Clean);
        matrix.runs.push(found("none"));
        assert_eq!(outcome(&matrix).unwrap(), Outcome::Findings);
    }

    #[test]
    fn the_time_left_follows_from_the_time_taken() {
        let second = Duration::from_secs(1);
        assert_eq!(left(second * 60, 2, 10, METHOD), second * 240);
        assert_eq!(left(Duration::ZERO, 0, 2, METHOD), second * 60);
    }
}
