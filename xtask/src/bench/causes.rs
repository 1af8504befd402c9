//! Predicted against measured gain of removing each cause that the lab can inject: the table of
//! `untax lab matrix`, which goes on where it was interrupted.

use super::gains::{self, Row};
use super::{Output, Untax};
use anyhow::{Context, bail};
use clap::Args;
use std::fmt::Write;
use std::path::Path;
use std::process::Stdio;
use untax_core::Interval;
use untax_core::finding::Gain;
use untax_core::lab::{LabCell, LabMatrix, Skipped, is_none};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Checks of each cause on each engine, and of two healthy servers of each engine
    #[arg(long, default_value_t = 5)]
    repeats: u32,
    /// Pairs of trials with each cause that can be removed and without it
    #[arg(long, default_value_t = 7)]
    pairs: u32,
    /// The seed of the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these causes
    #[arg(long, value_name = "CAUSE,…")]
    causes: Option<String>,
    /// Only these engines
    #[arg(long, value_name = "ENGINE,…")]
    engines: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Runs two matrices, one to find causes again and again, one to remove each, and writes the table
/// of both.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let mut found = matrix(options, "found", options.repeats, 0)?;
    let removed = matrix(options, "removed", 1, options.pairs)?;
    found.runs.extend(removed.runs);
    let new = |skipped: &Skipped| !found.skipped.contains(skipped);
    let skipped: Vec<Skipped> = removed.skipped.into_iter().filter(new).collect();
    found.skipped.extend(skipped);
    write_table(&found, options)
}

/// `untax lab matrix`, which goes on with one of the same name that was interrupted; one that is whole
/// stands until another folder, seed or program is asked for.
fn matrix(options: &Options, name: &str, repeats: u32, pairs: u32) -> anyhow::Result<LabMatrix> {
    let folder = options.output.out.join(name);
    let saved = folder.join("matrix.json");
    let untax = Untax::find()?;
    if let Some(whole) = read(&saved).ok().filter(|saved| saved.complete) {
        let built = untax.program.metadata()?.modified()?;
        if whole.seed == options.seed && built <= saved.metadata()?.modified()? {
            return Ok(whole);
        }
    }
    let out = folder.to_str().context("the folder's name is no text")?;
    let [repeats, pairs, seed] =
        [repeats.into(), pairs.into(), options.seed].map(|n| n.to_string());
    let mut words =
        vec!["lab", "matrix", "--repeats", &repeats, "--pairs", &pairs, "--seed", &seed, "-o", out];
    for (flag, chosen) in [("--causes", &options.causes), ("--engines", &options.engines)] {
        words.extend(chosen.iter().flat_map(|chosen| [flag, chosen]));
    }
    let mut command = untax.command(&words);
    let status = command.stderr(Stdio::inherit()).status()?;
    // One that finds what it should not, or does not find what it should, is a result too.
    if !matches!(status.code(), Some(0 | 1)) {
        bail!("untax lab matrix ended with {status}");
    }
    read(&saved)
}

fn read(saved: &Path) -> anyhow::Result<LabMatrix> {
    let text = std::fs::read_to_string(saved).with_context(|| saved.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

fn write_table(matrix: &LabMatrix, options: &Options) -> anyhow::Result<()> {
    let mut text = format!(
        "# Every cause: whether it is found, and what removing it brings\n\n\
         `untax lab matrix`: each cause on a scratch server under load, {} times in random order, \
         checked for 5 s; then once more in another order, with {} pairs of trials of 5 s with and \
         without it.\n\n\
         Machine: {}. Command: `{}`.\n\n## Found\n\n\
         | cause | engine | found | first among taxes | tax |\n|---|---|---|---|---|\n",
        options.repeats,
        options.pairs,
        super::trials::machine(),
        super::trials::command(),
    );
    for cell in matrix.cells() {
        let of = |count: usize| format!("{count} of {}", cell.runs.len());
        let found = cell.runs.iter().filter(|run| run.found).count();
        let first = match cell.takes() {
            Some(takes) => format!("takes {takes}"),
            None if is_none(cell.cause) => String::new(),
            None => of(cell.first()),
        };
        let tax = cell.tax().map_or(String::new(), |tax| format!("{:.0} %", tax * 100.0));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {first} | {tax} |",
            cell.cause,
            cell.engine,
            of(found)
        );
    }
    let cells = matrix.cells();
    let removed = cells.iter().filter(|cell| !is_none(cell.cause));
    text += &format!("\n## Gain\n\n{}\n\n{}", gains::LEGEND, gains::table(removed.map(row)));
    for skipped in &matrix.skipped {
        let _ = writeln!(text, "- {} on {}: {}", skipped.cause, skipped.engine, skipped.why);
    }
    options.output.write("causes.md", &text)?;
    eprintln!("{text}");
    Ok(())
}

fn row(cell: &LabCell) -> Row {
    let interval = |gain: Gain| Interval::new(gain.low, gain.factor, gain.high);
    Row {
        load: format!("{} on {}", cell.cause, cell.engine),
        predicted: cell.predicted_gain().map(interval),
        measured: cell.measured_gain().map(interval),
        floor: cell.floor(),
    }
}
