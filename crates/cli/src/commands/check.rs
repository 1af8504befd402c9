//! `untax check`.

use crate::Outcome;
use crate::screen::{print, print_json, say, say_all, style, try_file, write_file};
use crate::state::State;
use crate::watching::{Watching, observe};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use untax_core::{Check, Reading, Severity, Window};
use untax_host::{Capture, Host};
use untax_report::terminal::Details;
use untax_report::{html, markdown, terminal};
use untax_trials::Interrupt;

/// Arguments of `untax check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 nothing found; 1 findings of --fail-on or above; 2 failed, or \
                        with --strict saw only a part; 3 bad usage. The code is also 0 where no \
                        database runs, or a rule could not look: see databases and unmeasured of \
                        --json.\n\n\
                        Examples:\n  untax check                        every database, ten seconds\n  \
                        untax check --pid 4012 --window 1m one database, a minute\n  \
                        untax check --html tax.html        also as a page to pass on\n  \
                        untax check --replay host.tar.gz   what a capture shows"
)]
pub struct Args {
    #[command(flatten)]
    watching: Watching,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Form of the output; --json overrides it
    #[arg(long, value_name = "FORMAT", default_value = "screen", value_parser = FORMATS)]
    format: String,
    /// Show idle databases too, and all evidence, on more than one screen
    #[arg(long)]
    all_details: bool,
    /// Also write the result as a self-contained web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The lowest severity that makes the exit code 1
    #[arg(long, value_name = "SEVERITY", default_value = "low", value_parser = FAIL_ON)]
    fail_on: String,
    /// Exit with 2 if untax could see only a part, for example without root
    #[arg(long)]
    strict: bool,
    /// Apply the rules again to a saved run, its file, or a capture
    #[arg(long, value_name = "RUN", conflicts_with_all = ["which", "window"])]
    replay: Option<String>,
}

/// What `--format` takes.
pub const FORMATS: [&str; 2] = ["screen", "markdown"];

/// What `--fail-on` takes.
const FAIL_ON: [&str; 3] = ["low", "medium", "high"];

/// A check as it is saved: its result, and the window it was made from.
#[derive(Serialize, Deserialize)]
pub struct Saved {
    /// The result.
    pub check: Check,
    /// What the rules saw.
    pub window: Window,
}

/// Runs the command.
pub fn run(args: &Args, state: &State) -> anyhow::Result<Outcome> {
    // Nobody is to wait for a window whose report cannot be written.
    args.html.as_deref().map_or(Ok(()), try_file)?;
    let check = match &args.replay {
        Some(run) => replayed(run, state)?,
        None => watched(args, state)?,
    };
    let details = if args.all_details { Details::All } else { Details::OneScreen };
    if args.json {
        print_json(&check)?;
    } else if args.format == "markdown" {
        print(&markdown::check(&check))?;
    } else {
        print(&terminal::check(&check, details, style()))?;
    }
    if let Some(path) = &args.html {
        let saved = |run: &str| format!("the check is saved: untax report {run} -o FILE");
        let again = Some(&check.run).filter(|run| !run.is_empty()).map(|run| saved(run));
        write_file(path, &html::check(&check))
            .with_context(|| again.unwrap_or_else(|| "the page is lost".to_owned()))?;
    }
    if args.strict && check.unseen().next().is_some() {
        let rules: BTreeSet<&str> = check.unseen().map(|gap| gap.rule.as_str()).collect();
        let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
        bail!("only a part was seen, which --strict forbids: {rules}; untax doctor says why");
    }
    Ok(outcome(&check, fail_on(&args.fail_on)))
}

fn watched(args: &Args, state: &State) -> anyhow::Result<Check> {
    let interrupt = Interrupt::by_ctrl_c().context("cannot listen for Ctrl-C")?;
    let options = args.watching.options()?;
    let observed = observe(options, state, &Host::live(), &Host::live(), &interrupt)?;
    let mut saved =
        Saved { check: observed.check(State::new_run("check")), window: observed.window };
    // A full disk or a read-only one must not cost the user the result.
    if let Err(error) = state.save_run(&saved.check.run, &saved) {
        say(&format!(
            "untax: this run is not saved, so that untax plan does not know it: {error:#}"
        ));
        saved.check.run = String::new();
    }
    Ok(saved.check)
}

fn replayed(run: &str, state: &State) -> anyhow::Result<Check> {
    let Saved { check, window } = load(run, state)?;
    Ok(untax_rules::check(&window, check.run, check.own))
}

/// A saved run by its id or its file, or a capture, whose check is made now.
pub fn load(run: &str, state: &State) -> anyhow::Result<Saved> {
    if !Capture::is_capture(Path::new(run)) {
        let mut saved: Saved = read(run, state)?;
        untax_engines::complete(&mut saved.window.start.databases);
        untax_engines::complete(&mut saved.window.end.databases);
        return Ok(saved);
    }
    let capture = Capture::open(Path::new(run))?;
    let (window, notes) = untax_pipeline::replay(&capture)?;
    say_all(&notes);
    let own = Reading::Absent("replayed".to_owned());
    Ok(Saved { check: untax_rules::check(&window, State::new_run("replay"), own), window })
}

/// A saved check. Of one that was printed, the saved one has what the rules saw.
fn read(run: &str, state: &State) -> anyhow::Result<Saved> {
    let value: serde_json::Value = state.load_run(run, Some("check"))?;
    let value = match value["run"].as_str() {
        Some(id) if value["schema"] == untax_core::check::SCHEMA => {
            let why =
                || format!("{run} is what a check printed, and its run is no longer saved here");
            state.load_run(id, None).with_context(why)?
        }
        _ => value,
    };
    serde_json::from_value(value).with_context(|| format!("{run} is no check of this version"))
}

/// The severity of that name.
fn fail_on(name: &str) -> Severity {
    match name {
        "high" => Severity::High,
        "medium" => Severity::Medium,
        _ => Severity::Low,
    }
}

/// Whether there is a finding of at least that severity.
pub fn outcome(check: &Check, least: Severity) -> Outcome {
    let of_databases = check.databases.iter().flat_map(|database| &database.findings);
    let mut all = of_databases.chain(&check.findings);
    if all.any(|finding| finding.severity >= least) { Outcome::Findings } else { Outcome::Clean }
}
