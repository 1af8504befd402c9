//! Whether each cause that the lab can inject is found, and predicted against measured gain of removing
//! it: two tables of `untax lab matrix`, which goes on where it was interrupted.

use super::gains::{self, Row};
use super::{Output, Untax};
use anyhow::{Context, bail};
use clap::Args;
use std::fmt::Write;
use std::path::Path;
use std::process::Stdio;
use untax_core::Interval;
use untax_core::finding::Gain;
use untax_core::lab::{LabCell, LabMatrix, LabRun, is_none};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Checks of each cause on each engine, and of two healthy servers of each engine; 0 for the
    /// gains alone
    #[arg(long, default_value_t = 5)]
    repeats: u32,
    /// Pairs of trials with each cause that can be removed and without it; 0 for the checks alone
    #[arg(long, default_value_t = 7)]
    pairs: u32,
    /// How much of each cause: strong, or mild for those that have such a dose
    #[arg(long, default_value = "strong")]
    dose: String,
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
/// of each when it is whole.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let mut found = Vec::new();
    if options.repeats > 0 {
        let matrix = matrix(options, "found", options.repeats, 0)?;
        write(options, "causes", &found_table(&matrix), &record(&matrix)?)?;
        found = matrix.runs;
    }
    if options.pairs == 0 {
        return Ok(());
    }
    let mut removed = matrix(options, "removed", 1, options.pairs)?;
    write(options, "gains", &gains_table(&removed, options), &record(&removed)?)?;
    // Those checked as well what they removed.
    removed.runs.extend(found);
    write(options, "causes", &found_table(&removed), &record(&removed)?)
}

/// Writes the table of that name and its runs; those of mild doses say so in their own.
fn write(options: &Options, name: &str, table: &str, runs: &str) -> anyhow::Result<()> {
    let dose = if options.dose == "strong" { "" } else { "-mild" };
    options.output.write(&format!("{name}{dose}.md"), table)?;
    options.output.write(&format!("{name}{dose}.json"), runs)?;
    eprintln!("{table}");
    Ok(())
}

/// `untax lab matrix`, which goes on with one of the same name that was interrupted; one that is whole
/// stands until another folder, seed, number of repeats or pairs or program is asked for, or a part of it.
fn matrix(options: &Options, name: &str, repeats: u32, pairs: u32) -> anyhow::Result<LabMatrix> {
    let folder = options.output.out.join(format!("{name}-{}", options.dose));
    let saved = folder.join("matrix.json");
    let untax = Untax::find()?;
    if let Some(whole) = read(&saved).ok().filter(|saved| saved.complete) {
        let built = untax.program.metadata()?.modified()?;
        let mut removed = whole.runs.iter().filter(|run| !is_none(&run.cause));
        let like = |run: &LabRun| {
            let same = |other: &&LabRun| (&other.cause, &other.engine) == (&run.cause, &run.engine);
            whole.runs.iter().filter(same).count() == repeats as usize
                && run.with_per_s.len() == pairs as usize
        };
        let same = whole.seed == options.seed
            && removed.all(like)
            && options.causes.is_none()
            && options.engines.is_none();
        if same && built <= saved.metadata()?.modified()? {
            return Ok(whole);
        }
    }
    let out = folder.to_str().context("the folder's name is no text")?;
    let [repeats, pairs, seed] =
        [repeats.into(), pairs.into(), options.seed].map(|n| n.to_string());
    let mut words = vec![
        "lab",
        "matrix",
        "--dose",
        &options.dose,
        "--repeats",
        &repeats,
        "--pairs",
        &pairs,
        "--seed",
        &seed,
        "-o",
        out,
    ];
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

fn found_table(matrix: &LabMatrix) -> String {
    let mut text = format!(
        "# Every cause: whether it is found\n\n\
         `untax lab matrix`: each cause on a scratch server under load, in random order, \
         checked for 5 s each time.\n\n{}\n\n\
         | cause | engine | found | first among taxes | tax |\n|---|---|---|---|---|\n",
        made(),
    );
    for cell in matrix.cells() {
        let of = |count: usize| format!("{count} of {}", cell.runs.len());
        let found = cell.runs.iter().filter(|run| run.found).count();
        let found = if is_none(cell.cause) {
            format!("nothing, {}", of(cell.runs.len() - found))
        } else {
            of(found)
        };
        let first = match cell.takes() {
            Some(takes) => format!("takes {takes}"),
            None if is_none(cell.cause) => String::new(),
            None => of(cell.first()),
        };
        let tax = cell.tax().map_or(String::new(), |tax| format!("{:.0} %", tax * 100.0));
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "| `{}` | {} | {found} | {first} | {tax} |", cell.cause, cell.engine);
    }
    text + left_out(matrix)
}

fn gains_table(matrix: &LabMatrix, options: &Options) -> String {
    let cells = matrix.cells();
    let removed = cells.iter().filter(|cell| !is_none(cell.cause));
    format!(
        "# Every cause: what removing it brings\n\n\
         `untax lab matrix`: each cause on a scratch server under load, with {} pairs of trials \
         of 7 s with and without it; a check of 5 s goes along with each trial. {}\n\n{}\n\n{}{}",
        options.pairs,
        gains::LEGEND,
        made(),
        gains::table(removed.map(row)),
        left_out(matrix),
    )
}

fn made() -> String {
    format!("Machine: {}. Command: `{}`.", super::trials::machine(), super::trials::command())
}

fn left_out(matrix: &LabMatrix) -> &'static str {
    if matrix.skipped.is_empty() {
        ""
    } else {
        "\nLeft out: engines that do not suffer from a cause, and causes without such a dose (`untax lab list`).\n"
    }
}

/// Every run in short: without its findings.
fn record(matrix: &LabMatrix) -> anyhow::Result<String> {
    let runs = matrix.runs.iter().map(|run| LabRun { findings: Vec::new(), ..run.clone() });
    let lines: Result<Vec<_>, _> = runs.map(|run| serde_json::to_string(&run)).collect();
    Ok(format!("[\n{}\n]\n", lines?.join(",\n")))
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
