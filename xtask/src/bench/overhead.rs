//! What checks take from the throughput of a database, one after the other or in one program.
//!
//! Arms alternate within one run of each server: A without, B with. What noise alone does comes from
//! neighbouring trials of the same arm.

use super::trials::{Trial, Trials, order};
use super::{Output, Untax};
use anyhow::Context;
use clap::Args;
use std::fmt::Write as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use untax_lab::{LabError, Pgbench, Place, Postgres, Redis, RedisBenchmark, Turn};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs of trials
    #[arg(long, default_value_t = 10)]
    pairs: u32,
    /// Length of one trial, seconds
    #[arg(long, default_value_t = 12)]
    seconds: u32,
    /// Connections
    #[arg(long, default_value_t = 8)]
    clients: u32,
    #[command(flatten)]
    output: Output,
}

/// What runs beside the load in arm B.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// One `untax check` after the other.
    Checks,
    /// One `untax watch --json`, from before the load to after it.
    Watch,
}

const LOADS: [(&str, Beside); 3] = [
    ("pgbench -S, checks one after the other", Beside::Checks),
    ("pgbench -S, one watch", Beside::Watch),
    ("redis-benchmark, one watch", Beside::Watch),
];

/// How long a watch is given to load its programs before the load begins.
const READY: Duration = Duration::from_secs(2);

/// Runs the bench and writes the result.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let _turn = Turn::wait()?;
    let untax = Untax::find()?;
    let path = options.output.out.join("overhead.json");
    let mut trials = Trials::open(&path)?;
    let postgres = Postgres::start(Place::Host, &[("shared_buffers", "256MB")])?;
    postgres.pgbench_fill(10, 100)?;
    let redis = Redis::start(Place::Host, &[])?;
    let load = Pgbench { clients: options.clients, seconds: options.seconds, ..Pgbench::default() };
    let asked = RedisBenchmark {
        clients: options.clients,
        requests: 500_000,
        keys: 100_000,
        value_bytes: 64,
        writes: false,
    };
    // Warms the buffers, and tells how many requests Redis answers in the length of a trial.
    postgres.pgbench(&load)?.finish()?;
    redis.benchmark(&RedisBenchmark { writes: true, ..asked })?.finish()?;
    let rate = redis.benchmark(&asked)?.finish()?;
    let asked = RedisBenchmark { requests: (rate * f64::from(options.seconds)) as u64, ..asked };
    for (name, beside) in LOADS {
        for pair in 0..options.pairs {
            for arm in order(pair) {
                if trials.has(pair, name, arm) {
                    continue;
                }
                let of_redis = name.starts_with("redis");
                let pid = if of_redis { redis.pid() } else { postgres.pid() };
                let pid = pid.context("the server does not run")?.to_string();
                let run = || -> Result<f64, LabError> {
                    let running =
                        if of_redis { redis.benchmark(&asked) } else { postgres.pgbench(&load) };
                    running?.finish()
                };
                let tps = match (arm, beside) {
                    ("B", Beside::Checks) => checked(&untax, &pid, run)?,
                    ("B", Beside::Watch) => watched(&untax, &pid, run)?,
                    _ => run()?,
                };
                let trial = Trial { pair, load: name.into(), arm: arm.into(), tps, check: None };
                trials.add(trial, &path)?;
            }
        }
    }
    Trials::finish(&path)?;
    report(&trials, options)
}

/// Runs checks one after the other until `load` ends.
fn checked(
    untax: &Untax,
    pid: &str,
    load: impl FnOnce() -> Result<f64, LabError>,
) -> anyhow::Result<f64> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| -> anyhow::Result<()> {
            while !done.load(Ordering::Relaxed) {
                // A calibration is made once on a host and kept, so it is not part of this.
                let arguments = ["check", "--pid", pid, "--no-calibration"];
                let mut check = Running(untax.command(&arguments).stdout(Stdio::null()).spawn()?);
                // The load waits for no check, so the last one is cut short.
                let ended = loop {
                    match check.0.try_wait()? {
                        None if !done.load(Ordering::Relaxed) => {
                            std::thread::sleep(Duration::from_millis(20));
                        }
                        ended => break ended.and_then(|status| status.code()),
                    }
                };
                anyhow::ensure!(ended.is_none_or(|code| code <= 1), "a check ended with {ended:?}");
            }
            Ok(())
        });
        let result = load();
        done.store(true, Ordering::Relaxed);
        checks.join().map_err(|_| anyhow::anyhow!("the checks ended early"))??;
        Ok(result?)
    })
}

/// Runs one watch from before `load` begins until it has ended.
fn watched(
    untax: &Untax,
    pid: &str,
    load: impl FnOnce() -> Result<f64, LabError>,
) -> anyhow::Result<f64> {
    let arguments = ["watch", "--json", "--pid", pid, "--no-calibration"];
    let mut watch = Running(untax.command(&arguments).stdout(Stdio::null()).spawn()?);
    std::thread::sleep(READY);
    let result = load()?;
    anyhow::ensure!(watch.0.try_wait()?.is_none(), "the watch ended before the load");
    Ok(result)
}

/// A program that is ended when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It changes nothing on the host, so that there is nothing to undo.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn report(trials: &Trials, options: &Options) -> anyhow::Result<()> {
    let mut rows = String::new();
    for (name, _) in LOADS {
        let (ratio, floor) = trials
            .ratio(name, "B", "A")
            .zip(trials.floor(name))
            .context("there are no pairs yet")?;
        let [low, mid, high] = [ratio.low, ratio.mid, ratio.high];
        let floor = floor * 100.0;
        writeln!(rows, "| {name} | **{mid:.4}** | {low:.4} … {high:.4} | ±{floor:.1} % |")?;
    }
    let text = format!(
        "# What checks cost the database\n\n\
         Throughput under {} connections with `untax check` (windows of 10 s), one after the other, \
         or one `untax watch --json` (windows of 2 s), over throughput without: {} pairs of {} s in \
         ABBA order on one server each. Floor: the 95th percentile of the difference between neighbouring trials of the \
         same arm.\n\n\
         | load | with over without | 95 % interval | A/A floor |\n|---|---|---|---|\n{rows}\n\
         Machine: {}. Command: `{}`. Every trial: [overhead.json](overhead.json).\n",
        options.clients, options.pairs, options.seconds, trials.machine, trials.command
    );
    options.output.write("overhead.md", &text)?;
    eprintln!("{text}");
    Ok(())
}
