//! Predicted against measured gain of 2 MiB over 4 KiB pages under PostgreSQL.
//!
//! Arm A runs with `huge_pages = off`, arm B with `on`; the server is restarted and its buffers
//! are warmed for each block of an arm, and every load runs once in a block, in an order that
//! changes with the pair. A check watches each load from beginning to end in both arms, so that
//! its own cost is in both; the prediction is what it says in arm A of the same pair.

use super::gains::{self, Row};
use super::trials::{Trial, Trials, order};
use super::{Output, Untax, essence, finished};
use anyhow::Context;
use clap::Args;
use serde_json::Value;
use std::path::Path;
use untax_core::{Interval, stats};
use untax_scenes::{HugePages, Pgbench, Place, Postgres, Turn};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs of blocks
    #[arg(long, default_value_t = 7)]
    pairs: u32,
    /// Length of one trial, seconds
    #[arg(long, default_value_t = 12)]
    seconds: u32,
    /// Scale of pgbench: 15 MB of data each
    #[arg(long, default_value_t = 300)]
    scale: u32,
    /// `shared_buffers`, in MiB
    #[arg(long, default_value_t = 6144)]
    buffers_mib: u64,
    #[command(flatten)]
    output: Output,
}

/// The loads: connections, and whether each transaction makes one of its own.
const LOADS: [(&str, u32, bool); 4] =
    [("-c 2", 2, false), ("-c 16", 16, false), ("-c 64", 64, false), ("-C -c 8", 8, true)];

/// Fills every buffer from the start, so that no trial reads a disk.
const WARM: &str = "create extension if not exists pg_prewarm; \
                    select pg_prewarm('pgbench_accounts'), pg_prewarm('pgbench_accounts_pkey')";

/// Runs the bench and writes the table.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let _turn = Turn::wait()?;
    let untax = Untax::find()?;
    let path = options.output.out.join("prediction.json");
    let mut trials = Trials::open(&path, |_| true)?;
    let buffers = format!("{}MB", options.buffers_mib);
    let small = [("shared_buffers", buffers.as_str()), ("huge_pages", "off")];
    let huge = [("shared_buffers", buffers.as_str()), ("huge_pages", "on")];
    let mut postgres = Postgres::start(Place::Host, &small)?;
    postgres.pgbench_fill(options.scale, 100)?;
    // The rest of the shared memory is about a twentieth of the buffers; a margin on top.
    let pages = options.buffers_mib / 2 + options.buffers_mib / 32 + 64;
    for pair in 0..options.pairs {
        for arm in order(pair) {
            if LOADS.iter().all(|(load, ..)| trials.has(pair, load, arm)) {
                continue;
            }
            postgres.stop();
            let _pool = if arm == "B" { Some(HugePages::reserve(pages)?) } else { None };
            postgres.restart(if arm == "B" { &huge } else { &small })?;
            postgres.sql(WARM)?;
            for (load, clients, reconnect) in shuffled(pair) {
                let (tps, check) = trial(&postgres, &untax, clients, reconnect, options.seconds)?;
                let trial =
                    Trial { pair, load: load.into(), arm: arm.into(), tps, check: Some(check) };
                trials.add(trial, &path)?;
            }
            postgres.stop();
        }
    }
    Trials::finish(&path)?;
    write_table(&trials, &options.output.out.join("prediction.md"))
}

/// The loads in an order of the pair's own, the same for both arms.
fn shuffled(pair: u32) -> [(&'static str, u32, bool); 4] {
    let mut loads = LOADS;
    fastrand::Rng::with_seed(pair.into()).shuffle(&mut loads);
    loads
}

fn trial(
    postgres: &Postgres,
    untax: &Untax,
    clients: u32,
    reconnect: bool,
    seconds: u32,
) -> anyhow::Result<(f64, Value)> {
    let pid = postgres.pid().context("PostgreSQL does not run")?;
    // The check opens a moment before the load and closes with it; calibration comes after.
    let check = untax.start_check(pid, &format!("{seconds}s"))?;
    let load = Pgbench { clients, seconds, reconnect, ..Pgbench::default() };
    let tps = postgres.pgbench(&load)?.finish()?;
    Ok((tps, essence(&finished(check)?, "small-pages")))
}

fn write_table(trials: &Trials, path: &Path) -> anyhow::Result<()> {
    let pairs = trials.made.iter().map(|trial| trial.pair).max().map_or(0, |last| last + 1);
    let text = format!(
        "# Predicted and measured gain of 2 MiB over 4 KiB pages\n\n\
         PostgreSQL under `pgbench -S -M prepared`, all data in shared buffers, {pairs} pairs in \
         ABBA order, the server restarted and warmed for each block. {}\n\n\
         Machine: {}. Command: `{}`. Every trial: [prediction.json](prediction.json).\n\n{}",
        gains::LEGEND,
        trials.machine,
        trials.command,
        gains::table(LOADS.iter().map(|(load, ..)| row(trials, load)))
    );
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    eprintln!("{}", path.display());
    Ok(())
}

fn row(trials: &Trials, load: &str) -> Row {
    Row {
        load: load.to_owned(),
        predicted: predicted(trials, load),
        measured: trials.ratio(load, "B", "A"),
        floor: trials.floor(load),
    }
}

/// What checks of arm A said of the gain: the medians of the middles and of the bounds.
fn predicted(trials: &Trials, load: &str) -> Option<Interval> {
    let of = |bound: &str| {
        let suffering = trials.made.iter().filter(|t| t.load == load && t.arm == "A");
        let said = suffering.filter_map(|trial| trial.check.as_ref()?["gain"][bound].as_f64());
        stats::median(&said.collect::<Vec<_>>())
    };
    Some(Interval::new(of("low")?, of("factor")?, of("high")?))
}
