//! Predicted against measured gain of 2 MiB over 4 KiB pages under PostgreSQL.
//!
//! Arm A runs with `huge_pages = off`, arm B with `on`; the server is restarted and its buffers
//! are warmed for each block of an arm, and every load runs once in a block. A check watches each load from beginning to end in both arms, so that
//! its own cost is in both; the prediction is what it says in arm A of the same pair.

use super::gains::{self, Row};
use super::output::Output;
use super::paired::Paired;
use super::program::{Untax, essence, finished};
use super::record::{Measured, Record};
use anyhow::Context;
use clap::Args;
use std::time::Duration;
use untax_core::{Interval, stats};
use untax_scenes::{HugePages, Pgbench, Postgres, Runtime, Turn};
use untax_trials::{Arm, Cell, Design, Rig, Slot};

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

/// The arms: name, and `huge_pages`.
const ARMS: [(&str, &str); 2] = [("A", "off"), ("B", "on")];

/// What the order is drawn from.
const SEED: u64 = 1;

/// Runs the bench and writes the table.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let _turn = Turn::wait()?;
    let design = design(options);
    let paired = Paired::open(&options.output, "prediction", &design)?;
    let untax = Untax::find()?;
    let buffers = format!("{}MB", options.buffers_mib);
    let postgres = Postgres::start(Runtime::Host, &settings(&buffers, 0))?;
    postgres.pgbench_fill(options.scale, 100)?;
    let mut server = Server { postgres, pool: None, buffers, untax, options };
    write_table(&paired.run(&mut server)?, options)
}

fn design(options: &Options) -> Design {
    let Options { pairs, seconds, scale, buffers_mib, .. } = options;
    let arm = |(name, huge_pages): &(&str, &str)| Arm {
        configuration: format!(
            "huge_pages = {huge_pages}, shared_buffers = {buffers_mib}MB, scale {scale}, {seconds} s"
        ),
        restart: true,
        ..Arm::new(*name)
    };
    let cell = |(load, ..): &(&str, u32, bool)| Cell {
        name: (*load).to_owned(),
        length: Some(Duration::from_secs((*seconds).into())),
    };
    let cells = LOADS.iter().map(cell).collect();
    Design::of_visits(SEED, ARMS.iter().map(arm).collect(), cells, *pairs)
}

/// The settings of an arm.
fn settings(buffers: &str, arm: usize) -> [(&str, &str); 2] {
    [("shared_buffers", buffers), ("huge_pages", ARMS[arm].1)]
}

/// The server, which is restarted for each arm. It is dropped before the pages that it uses.
struct Server<'a> {
    postgres: Postgres,
    pool: Option<HugePages>,
    buffers: String,
    untax: Untax,
    options: &'a Options,
}

impl Rig for Server<'_> {
    type Error = anyhow::Error;
    type Outcome = Vec<Measured>;

    fn prepare(&mut self, arms: &[usize], _: &mut dyn FnMut(&str, f64)) -> anyhow::Result<()> {
        self.tear_down()?;
        for arm in arms {
            if ARMS[*arm].1 == "on" {
                // The rest of the shared memory is about a twentieth of the buffers; a margin on top.
                let buffers_mib = self.options.buffers_mib;
                self.pool = Some(HugePages::reserve(buffers_mib / 2 + buffers_mib / 32 + 64)?);
            }
            self.postgres.restart(&settings(&self.buffers, *arm))?;
            self.postgres.sql(WARM)?;
        }
        Ok(())
    }

    fn run(&mut self, slot: &Slot) -> anyhow::Result<Option<Vec<Measured>>> {
        let (load, clients, reconnect) = LOADS[slot.cell];
        let seconds = self.options.seconds;
        let pid = self.postgres.pid().context("PostgreSQL does not run")?;
        // The check opens a moment before the load and closes with it; calibration comes after.
        let check = self.untax.start_check(pid, &format!("{seconds}s"))?;
        let pgbench = Pgbench { clients, seconds, reconnect, ..Pgbench::default() };
        let tps = self.postgres.pgbench(&pgbench)?.finish()?;
        let check = Some(essence(&finished(check)?, "small-pages"));
        let arm = ARMS[slot.arm].0.to_owned();
        Ok(Some(vec![Measured { load: load.to_owned(), arm, tps, check }]))
    }

    fn tear_down(&mut self) -> anyhow::Result<()> {
        self.postgres.stop();
        self.pool = None;
        Ok(())
    }
}

fn write_table(record: &Record, options: &Options) -> anyhow::Result<()> {
    let pairs = record.made.iter().map(|entry| entry.pair).max().map_or(0, |last| last + 1);
    let text = format!(
        "# Predicted and measured gain of 2 MiB over 4 KiB pages\n\n\
         PostgreSQL under `pgbench -S -M prepared`, all data in shared buffers, {pairs} pairs in \
         ABBA order, the server restarted and warmed for each block. {}\n\n\
         Machine: {}. Command: `{}`. Every trial: [prediction.json](prediction.json).\n\n{}",
        gains::LEGEND,
        record.machine,
        record.command,
        table(record)
    );
    options.output.write("prediction.md", &text)?;
    eprintln!("{}", options.output.out.join("prediction.md").display());
    Ok(())
}

fn table(record: &Record) -> String {
    gains::table(LOADS.iter().map(|(load, ..)| row(record, load)))
}

fn row(record: &Record, load: &str) -> Row {
    Row {
        load: load.to_owned(),
        predicted: predicted(record, load),
        measured: record.ratio(load, "B", "A"),
        floor: record.floor(load),
    }
}

/// What checks of arm A said of the gain: the medians of the middles and of the bounds.
fn predicted(record: &Record, load: &str) -> Option<Interval> {
    let of = |bound: &str| {
        let checks = record.checks(load, "A");
        stats::median(&checks.filter_map(|check| check["gain"][bound].as_f64()).collect::<Vec<_>>())
    };
    Some(Interval::new(of("low")?, of("factor")?, of("high")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_published_table_is_that_of_the_published_trials() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results");
        let record = Record::read(&results.join("prediction.json")).unwrap();
        let page = std::fs::read_to_string(results.join("prediction.md")).unwrap();
        assert!(page.contains(&table(&record)), "{}", table(&record));
    }
}
