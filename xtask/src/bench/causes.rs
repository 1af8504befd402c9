//! Whether each cause that the lab can inject is found, and predicted against measured gain of removing
//! it: two tables of `untax lab matrix`, which goes on where it was interrupted.
//!
//! The pairs of each cause are made by that command, with `untax_trials`.

use super::gains::{self, Row};
use super::output::{Output, command, machine};
use super::program::Untax;
use anyhow::{Context, bail};
use clap::Args;
use std::path::Path;
use std::process::Stdio;
use untax_core::Gain;
use untax_core::Interval;
use untax_core::lab::{Failed, LabCell, LabMatrix, LabRun, is_none};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Checks of each cause on each engine, and of two healthy servers of each engine; 0 for the
    /// gains alone
    #[arg(long, default_value_t = 5)]
    pub(super) repeats: u32,
    /// Pairs of trials with each cause that can be removed and without it; 0 for the checks alone
    #[arg(long, default_value_t = 7)]
    pub(super) pairs: u32,
    /// How much of each cause: strong, or mild for those that have such a dose
    #[arg(long, default_value = "strong")]
    pub(super) dose: String,
    /// The seed of the order
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Only these causes
    #[arg(long, value_name = "CAUSE,…")]
    pub(super) causes: Option<String>,
    /// Only these engines
    #[arg(long, value_name = "ENGINE,…")]
    pub(super) engines: Option<String>,
    #[command(flatten)]
    pub(super) output: Output,
}

/// Runs two matrices, one to find causes again and again, one to remove each, and writes the table
/// of each when it is whole.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    if options.repeats > 0 {
        let matrix = matrix(options, "found", options.repeats, 0)?;
        write(options, "causes", &found_table(&matrix), &record(&matrix)?)?;
        (found, failed) = (matrix.runs, matrix.failed);
    }
    if options.pairs == 0 {
        return Ok(());
    }
    let mut removed = matrix(options, "removed", 1, options.pairs)?;
    write(options, "gains", &gains_table(&removed, options), &record(&removed)?)?;
    // Those checked as well what they removed.
    removed.runs.extend(found);
    removed.failed.extend(failed);
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
pub(super) fn matrix(
    options: &Options,
    name: &str,
    repeats: u32,
    pairs: u32,
) -> anyhow::Result<LabMatrix> {
    let folder = options.output.out.join(format!("{name}-{}", options.dose));
    let saved = folder.join("matrix.json");
    let untax = Untax::find()?;
    let whole = |saved: &LabMatrix| saved.complete && !saved.runs.is_empty();
    if let Some(whole) = read(&saved).ok().filter(whole) {
        let built = untax.program.metadata()?.modified()?;
        let mut removed = whole.runs.iter().filter(|run| !is_none(&run.cause));
        let like = |run: &LabRun| {
            let runs = whole.runs.iter().filter(|other| other.key() == run.key()).count();
            let failed = whole.failed.iter().filter(|other| other.key() == run.key()).count();
            // One that failed may have been tried again.
            (runs..=runs + failed).contains(&(repeats as usize))
                && run.with_per_s.len() as u32 + run.lost_pairs == pairs
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
         checked for 5 s each time. Those that failed are in the table and not in the JSON. *Found*: and not as much without the cause, of which the last \
         column tells.\n\n{}\n\n\
         | cause | engine | found | first among taxes | tax | without the cause |\n\
         |---|---|---|---|---|---|\n",
        made(),
    );
    for cell in matrix.cells() {
        text += &found_row(&cell);
    }
    text + &failures(matrix) + left_out(matrix)
}

fn found_row(cell: &LabCell) -> String {
    let of = |count: usize| format!("{count} of {}", cell.tries());
    let percent = |tax: f64| format!("{:.0} %", tax * 100.0);
    let tax = cell.tax().map_or(String::new(), percent);
    let expected = of(cell.as_expected());
    let [found, first, without] = if is_none(cell.cause) {
        [format!("nothing, {expected}"), String::new(), String::new()]
    } else {
        let first = cell.takes().map_or_else(|| of(cell.first()), |what| format!("takes {what}"));
        // Nobody looked for it where the run failed.
        let still = format!("{} of {}", cell.found_without(), cell.runs.len());
        let left = cell.tax_without().map_or(String::new(), |tax| format!(", {}", percent(tax)));
        [expected, first, still + &left]
    };
    format!("| `{}` | {} | {found} | {first} | {tax} | {without} |\n", cell.cause, cell.engine)
}

fn gains_table(matrix: &LabMatrix, options: &Options) -> String {
    let cells = matrix.cells();
    let removed = cells.iter().filter(|cell| !is_none(cell.cause));
    format!(
        "# Every cause: what removing it brings\n\n\
         `untax lab matrix`: each cause on a scratch server under load, with {} pairs of trials \
         of 7 s with and without it; a check of 5 s goes along with each trial. {}\n\n{}\n\n{}{}{}",
        options.pairs,
        gains::LEGEND,
        made(),
        gains::table(removed.map(row)),
        failures(matrix),
        left_out(matrix),
    )
}

pub(super) fn made() -> String {
    format!("Machine: {}. Command: `{}`.", machine(), command())
}

/// The runs that failed, each with the reason.
pub(super) fn failures(matrix: &LabMatrix) -> String {
    let line = |Failed { cause, engine, repeat, why }: &Failed| {
        format!("- `{cause}` on {engine}, run {repeat}: {why}\n")
    };
    let lines: String = matrix.failed.iter().map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\nFailed, which counts as not found:\n\n{lines}")
}

fn left_out(matrix: &LabMatrix) -> &'static str {
    if matrix.skipped.is_empty() {
        ""
    } else {
        "\nLeft out: engines that do not suffer from a cause or that the lab does not do it to, and causes \
         without such a dose; `untax lab list` says why.\n"
    }
}

/// Every run in short: without its findings, but for those of healthy servers. They are few, and show
/// that what was found there is nothing but what a hypervisor stole.
pub(super) fn record(matrix: &LabMatrix) -> anyhow::Result<String> {
    let mut runs = matrix.runs.clone();
    for run in runs.iter_mut().filter(|run| !is_none(&run.cause)) {
        run.findings.clear();
    }
    let lines: Result<Vec<_>, _> = runs.iter().map(serde_json::to_string).collect();
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TIME: &str = r#"{"active_s": 1, "on_cpu_s": 1, "runnable_s": 0, "throttled_s": 0,
        "disk_s": 0, "reclaim_s": 0, "lock_s": 0, "network_s": 0, "idle_s": 0,
        "unaccounted_s": 0}"#;

    /// A run with the share that the cause took, and with what was left of it.
    pub fn run(cause: &str, found: bool, shares: Option<[f64; 2]>) -> LabRun {
        let time: Value = serde_json::from_str(TIME).unwrap();
        let tax = |share: f64| json!({"share": share, "low": share, "high": share, "method": ""});
        let run = json!({
            "schema": "untax.lab/1",
            "run": "lab-1",
            "taken_at": "2026-01-01T00:00:00Z",
            "cause": cause,
            "engine": "mysql",
            "dose": "strong",
            "window_s": 5.0,
            "found": found,
            "rank": shares.map(|_| 1),
            "tax": shares.map(|[with, _]| tax(with)),
            "found_without": shares.is_some(),
            "tax_without": shares.map(|[_, without]| tax(without)),
            "with_per_s": [],
            "without_per_s": [],
            "time": time,
            "time_without": time,
            "findings": [],
            "findings_without": [],
        });
        serde_json::from_value(run).unwrap()
    }

    pub fn matrix(runs: Vec<LabRun>) -> LabMatrix {
        LabMatrix {
            schema: "untax.lab-matrix/1".to_owned(),
            run: "lab-matrix-1".to_owned(),
            taken_at: runs[0].taken_at,
            cpu_model: String::new(),
            kernel_release: String::new(),
            seed: 1,
            complete: true,
            runs,
            failed: Vec::new(),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn what_is_found_in_healthy_servers_stays_in_the_record() {
        let finding = json!({"rule": "vm-steal", "severity": "low", "summary": "", "fix": "",
            "evidence": []});
        let of = |cause| {
            let findings = vec![serde_json::from_value(finding.clone()).unwrap()];
            LabRun { findings, ..run(cause, true, None) }
        };
        let matrix = matrix(["disk-slow", "none", "none-idle"].map(of).to_vec());
        let saved: Vec<LabRun> = serde_json::from_str(&record(&matrix).unwrap()).unwrap();
        assert_eq!(saved.iter().map(|run| run.findings.len()).collect::<Vec<_>>(), [0, 1, 1]);
        assert_eq!(saved[1].findings[0].rule, "vm-steal");
    }

    #[test]
    fn what_failed_and_what_is_found_without_a_cause_are_in_the_table() {
        let disk = |shares| run("disk-slow", true, Some(shares));
        let runs = vec![disk([0.9, 0.1]), disk([0.9, 0.9]), run("none", false, None)];
        let mut matrix = matrix(runs);
        assert_eq!(failures(&matrix), "");
        matrix.fail("disk-slow", "mysql", "no server".to_owned());
        matrix.fail("io-hang", "mysql", "no load".to_owned());
        let rows: Vec<String> = matrix.cells().iter().map(found_row).collect();
        assert_eq!(
            rows,
            [
                "| `disk-slow` | mysql | 1 of 3 | 2 of 3 | 90 % | 2 of 2, 50 % |\n",
                "| `io-hang` | mysql | 0 of 1 | 0 of 1 |  | 0 of 0 |\n",
                "| `none` | mysql | nothing, 1 of 1 |  |  |  |\n",
            ]
        );
        let text = failures(&matrix);
        assert!(text.contains("- `disk-slow` on mysql, run 3: no server\n"), "{text}");
        assert!(text.ends_with("- `io-hang` on mysql, run 1: no load\n"), "{text}");
    }
}
