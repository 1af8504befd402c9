//! Whether `untax verify` says what is true, on real runs: nothing where nothing is, and a tenth
//! where a tenth is.
//!
//! A PostgreSQL is checked under too many connections; the plan against them has no step, and both
//! arms get the same workload, so that every difference is chance. Whether a tenth would be found is
//! told from the very same trials: with a tenth added to one arm, and by what each run says of its
//! own power.
//!
//! Each run is a whole `untax verify`, which makes its pairs with `untax_trials`; the runs are compared with
//! nothing.

use super::output::{Output, command, machine};
use super::program::{Untax, finished};
use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::Duration;
use untax_core::power::FACTOR;
use untax_core::verdict::{Trial, Verification, Word, judge};
use untax_scenes::{Postgres, Runtime, Turn};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Verifications
    #[arg(long, default_value_t = 10)]
    runs: usize,
    /// Pairs of trials of each
    #[arg(long, default_value_t = 10)]
    pairs: u32,
    /// Length of one trial, seconds
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    #[command(flatten)]
    output: Output,
}

/// Every run.
#[derive(Debug, Serialize, Deserialize)]
struct Runs {
    command: String,
    machine: String,
    made: Vec<Verification>,
}

/// Connections of the check, and of the trials.
const MANY: u32 = 300;
const FEW: u32 = 8;

/// How long so many take to connect.
const CONNECTED: Duration = Duration::from_secs(3);

/// Runs the bench and writes the table.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let _turn = Turn::wait()?;
    let untax = Untax::find()?;
    let mut all = Runs { command: command(), machine: machine(), made: Vec::new() };
    let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "256MB")])?;
    postgres.pgbench_fill(10, 100)?;
    let plan = plan(&postgres, &untax)?;
    for _ in 0..options.runs {
        let run = verify(&postgres, &untax, &plan, options)?;
        eprintln!("{:?} {:?}", run.verdict, run.power);
        all.made.push(run);
        options.output.write("verdicts.json", &(serde_json::to_string_pretty(&all)? + "\n"))?;
    }
    options.output.write("verdicts.md", &table(&all)?)
}

/// The plan against too many connections, from a check under them.
fn plan(postgres: &Postgres, untax: &Untax) -> anyhow::Result<String> {
    let pid = postgres.pid().context("PostgreSQL does not run")?;
    let mut load = Command::new("sh");
    load.args(["-c", &busy(postgres)]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut load = load.stderr(Stdio::null()).spawn()?;
    std::thread::sleep(CONNECTED);
    finished(untax.start_check(pid, "8s")?)?;
    load.wait()?;
    let plan = said(untax, &["plan", "--only", "too-many-connections", "--json"])?;
    Ok(plan["plan"].as_str().context("a plan without an id")?.to_owned())
}

/// Many clients with requests that keep the server busy, however slow the clients are.
fn busy(postgres: &Postgres) -> String {
    let (socket, port, user) = (postgres.socket_directory(), postgres.port(), postgres.user());
    format!(
        "echo 'SELECT count(*) FROM generate_series(1, 20000);' | \
         pgbench -n -c {MANY} -j 2 -T 15 -f /dev/stdin -h {socket} -p {port} -U {user} postgres"
    )
}

fn verify(
    postgres: &Postgres,
    untax: &Untax,
    plan: &str,
    options: &Options,
) -> anyhow::Result<Verification> {
    let (socket, port, user) = (postgres.socket_directory(), postgres.port(), postgres.user());
    let seconds = options.seconds;
    let load = format!(
        "pgbench -n -S -M prepared -c {FEW} -j 2 -T {seconds} -h {socket} -p {port} -U {user} postgres"
    );
    let pairs = options.pairs.to_string();
    let words = ["verify", plan, "--workload", &load, "--workload-applied", &load];
    let more = ["--warm-up", "0", "--pairs", &pairs, "--json"];
    Ok(serde_json::from_value(said(untax, &[&words[..], &more].concat())?)?)
}

/// What a command of untax prints as JSON.
fn said(untax: &Untax, arguments: &[&str]) -> anyhow::Result<Value> {
    let output = untax.command(arguments).stderr(Stdio::inherit()).output()?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!("untax {} ended with {}", arguments.join(" "), output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The verdict on the same trials, had the plan been worth so much.
fn with_effect(run: &Verification, factor: f64) -> Option<Word> {
    let worth = |trial: &Trial| if trial.applied { factor } else { 1.0 };
    let trials: Vec<Trial> = run
        .trials
        .iter()
        .map(|trial| Trial { rate: trial.rate * worth(trial), ..trial.clone() })
        .collect();
    Some(judge(&trials)?.word)
}

fn table(all: &Runs) -> anyhow::Result<String> {
    let count = all.made.len();
    let of = |word: Word| all.made.iter().filter(|run| run.verdict.word == word).count();
    let found = |factor: f64, word: Word| {
        all.made.iter().filter(|run| with_effect(run, factor) == Some(word)).count()
    };
    let mut text = format!(
        "# Verdicts where the truth is known\n\n\
         `untax verify` on a real PostgreSQL under `pgbench -S -c {FEW}`, the same in both arms: no \
         difference is the truth. A tenth: the same trials with the rates of one arm multiplied or \
         divided by {FACTOR}. Power: how often that tenth would be proven at the noise of the run, \
         simulated from its trials ({file}).\n\n\
         Machine: {}. Command: `{}`. Every trial: [verdicts.json](verdicts.json).\n\n\
         - no difference: inconclusive in {} of {count}, proven in {}, disproven in {};\n\
         - a tenth more: proven in {} of {count}; a tenth less: disproven in {} of {count}.\n\n\
         | run | verdict | measured (95 %) | noise of the median | pairs | a tenth more | power |\n\
         |---|---|---|---|---|---|---|\n",
        all.machine,
        all.command,
        of(Word::Inconclusive),
        of(Word::Proven),
        of(Word::Disproven),
        found(FACTOR, Word::Proven),
        found(1.0 / FACTOR, Word::Disproven),
        file = "crates/core/src/power.rs",
    );
    for (at, run) in all.made.iter().enumerate() {
        let verdict = &run.verdict;
        let power = run.power.map_or("too few pairs".to_owned(), |p| format!("{:.2}", p.found));
        let word = |word: Option<Word>| format!("{word:?}").replace("Some(", "").replace(')', "");
        writeln!(
            text,
            "| {} | {} | {:.3} ({:.3} … {:.3}) | ±{:.1} % | {} | {} | {power} |",
            at + 1,
            word(Some(verdict.word)).to_lowercase(),
            verdict.measured.mid,
            verdict.measured.low,
            verdict.measured.high,
            verdict.floor * 100.0,
            verdict.pairs,
            word(with_effect(run, FACTOR)).to_lowercase(),
        )?;
    }
    Ok(text)
}
