//! What checks running back to back take from the throughput of PostgreSQL.
//!
//! Arms alternate within one run of the server: A without checks, B with one check after the
//! other. What noise alone does comes from neighbouring trials of the same arm.

use super::trials::{Trial, Trials, order};
use super::{Output, Untax};
use anyhow::Context;
use clap::Args;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use untax_lab::{Pgbench, Place, Postgres, Turn};

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
    #[arg(long, default_value_t = 16)]
    clients: u32,
    /// Length of each check's window
    #[arg(long, default_value = "2s")]
    window: String,
    #[command(flatten)]
    output: Output,
}

const LOAD: &str = "pgbench -S";

/// Runs the bench and writes the result.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let _turn = Turn::wait()?;
    let untax = Untax::find()?;
    let path = options.output.out.join("overhead.json");
    let mut trials = Trials::open(&path)?;
    let postgres = Postgres::start(Place::Host, &[("shared_buffers", "1GB")])?;
    postgres.pgbench_fill(40, 100)?;
    let load = Pgbench { clients: options.clients, seconds: options.seconds, ..Pgbench::default() };
    // Warms the buffers, and the page tables of nobody: backends of each trial are new.
    postgres.pgbench(&load)?.finish()?;
    for pair in 0..options.pairs {
        for arm in order(pair) {
            if trials.has(pair, LOAD, arm) {
                continue;
            }
            let running = postgres.pgbench(&load)?;
            let tps = if arm == "B" {
                checked(&untax, &postgres, &options.window, || running.finish())?
            } else {
                running.finish()?
            };
            let trial = Trial { pair, load: LOAD.into(), arm: arm.into(), tps, check: None };
            trials.add(trial, &path)?;
        }
    }
    Trials::finish(&path)?;
    report(&trials, options)
}

/// Runs checks one after the other until `load` ends.
fn checked<T, E>(
    untax: &Untax,
    postgres: &Postgres,
    window: &str,
    load: impl FnOnce() -> Result<T, E>,
) -> anyhow::Result<T>
where
    anyhow::Error: From<E>,
{
    let pid = postgres.pid().context("PostgreSQL does not run")?.to_string();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| -> anyhow::Result<u32> {
            let mut made = 0;
            while !done.load(Ordering::Relaxed) {
                // A calibration is made once on a host and kept, so it is not part of this.
                let arguments = ["check", "--pid", &pid, "--window", window, "--no-calibration"];
                untax.command(&arguments).stdout(Stdio::null()).status()?;
                made += 1;
            }
            Ok(made)
        });
        let result = load();
        done.store(true, Ordering::Relaxed);
        let made = checks.join().map_err(|_| anyhow::anyhow!("the checks ended early"))??;
        eprintln!("{made} checks");
        Ok(result?)
    })
}

fn report(trials: &Trials, options: &Options) -> anyhow::Result<()> {
    let (Some(ratio), Some(floor)) = (trials.ratio(LOAD, "B", "A"), trials.floor(LOAD)) else {
        anyhow::bail!("there are no pairs yet");
    };
    let text = format!(
        "# What checks cost the database\n\n\
         `pgbench -S -M prepared -c {}` with `untax check --window {}` running back to back over \
         without, {} pairs of {} s in ABBA order on one server.\n\n\
         Throughput with checks over without: **{:.4}** (95 %: {:.4} … {:.4}); A/A floor ±{:.1} %.\n\n\
         Machine: {}. Command: `{}`. Every trial: [overhead.json](overhead.json).\n",
        options.clients,
        options.window,
        options.pairs,
        options.seconds,
        ratio.mid,
        ratio.low,
        ratio.high,
        floor * 100.0,
        trials.machine,
        trials.command
    );
    options.output.write("overhead.md", &text)?;
    eprintln!("{text}");
    Ok(())
}
