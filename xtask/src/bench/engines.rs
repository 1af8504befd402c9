//! Servers of the versions that people run: whether their time is accounted for, what is found of them where
//! nothing is wrong, and predicted against measured gain of raising a limit. One table of `untax lab matrix`,
//! which goes on where it was interrupted.

use super::causes;
use super::output::Output;
use clap::Args;
use untax_core::Gain;
use untax_core::Severity;
use untax_core::lab::{LabMatrix, LabRun};
use untax_core::units::Seconds;

const THROTTLED: &str = "cpu-throttled";
/// Of an engine whose data grow in memory a limit kills some; of all others it evicts what they read again.
const SHORT_OF_MEMORY: [&str; 2] = ["reclaim-stall", "oom-near"];
const BUSY: &str = "none";
const IDLE: &str = "none-idle";

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs of trials with each limit and without it
    #[arg(long, default_value_t = 3)]
    pairs: u32,
    /// The seed of the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The servers
    #[arg(
        long,
        value_name = "ENGINE,…",
        default_value = "postgres17,postgres18,mysql9,mariadb11,valkey"
    )]
    engines: String,
    #[command(flatten)]
    output: Output,
}

/// Runs the matrix and writes its table.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let all = [&[BUSY, IDLE, THROTTLED][..], &SHORT_OF_MEMORY].concat().join(",");
    let of_matrix = causes::Options {
        repeats: 1,
        pairs: options.pairs,
        dose: "strong".to_owned(),
        seed: options.seed,
        causes: Some(all),
        engines: Some(options.engines.clone()),
        output: options.output.clone(),
    };
    let matrix = causes::matrix(&of_matrix, "engines", 1, options.pairs)?;
    let table = table(&matrix, options);
    options.output.write("engines.md", &table)?;
    options.output.write("engines.json", &causes::record(&matrix)?)?;
    eprintln!("{table}");
    Ok(())
}

fn table(matrix: &LabMatrix, options: &Options) -> String {
    let rows: String = options.engines.split(',').map(|engine| row(matrix, engine)).collect();
    format!(
        "# Are the versions that people run watched as well?\n\n\
         *Unaccounted*: of all thread time of the idle server, of the active time under full load. *Found \
         though healthy*: above info, idle and under full load. *Throttled*: 0.3 CPUs. *Memory*: \
         `reclaim-stall`, or `oom-near`, which takes no time. Gains are factors with their intervals: the \
         median prediction, and what {} pairs of trials measured. {}\n\n\
         | server | unaccounted, idle | busy | found though healthy | throttled: predicted | measured | \
         memory: predicted | measured |\n\
         |---|---|---|---|---|---|---|---|\n{rows}{}",
        options.pairs,
        causes::made(),
        causes::failures(matrix),
    )
}

fn row(matrix: &LabMatrix, engine: &str) -> String {
    let run = |cause| matrix.runs.iter().find(|run| run.key() == (cause, engine));
    let (busy, idle) = (run(BUSY), run(IDLE));
    let active = |run: &LabRun| seconds(run.time.active_s.value());
    let all = |run: &LabRun| {
        let time = &run.time;
        let parts = [&time.active_s, &time.idle_s, &time.unaccounted_s];
        parts.iter().map(|part| seconds(part.value())).sum()
    };
    let [throttled, measured_throttled] = gains(run(THROTTLED));
    let [short, measured_short] = gains(SHORT_OF_MEMORY.into_iter().find_map(run));
    let cells = [
        format!("`{engine}`"),
        unaccounted(idle, all),
        unaccounted(busy, active),
        found_though_healthy(&[idle, busy]),
        throttled,
        measured_throttled,
        short,
        measured_short,
    ];
    format!("| {} |\n", cells.join(" | "))
}

const NOT_MEASURED: &str = "not measured";

/// The part of that time that is unaccounted for; unknown is none of it.
fn unaccounted(run: Option<&LabRun>, of: impl Fn(&LabRun) -> f64) -> String {
    let part = run.and_then(|run| Some(run.time.unaccounted_s.value()?.0 / of(run)));
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    part.filter(|part| part.is_finite()).map_or(NOT_MEASURED.to_owned(), percent)
}

fn seconds(part: Option<&Seconds>) -> f64 {
    part.map_or(f64::NAN, |part| part.0)
}

fn found_though_healthy(runs: &[Option<&LabRun>]) -> String {
    if runs.iter().any(Option::is_none) {
        return NOT_MEASURED.to_owned();
    }
    let findings = runs.iter().flatten().flat_map(|run| &run.findings);
    let above = findings.filter(|finding| finding.severity != Severity::Info);
    let mut rules: Vec<String> = above.map(|finding| format!("`{}`", finding.rule)).collect();
    rules.sort_unstable();
    rules.dedup();
    if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") }
}

/// The predicted gain and the measured one.
fn gains(run: Option<&LabRun>) -> [String; 2] {
    let word = |gain: Gain| format!("{:.2} ({:.2}–{:.2})", gain.factor, gain.low, gain.high);
    let Some(run) = run else { return [(); 2].map(|()| NOT_MEASURED.to_owned()) };
    let missed = if run.found { "no gain" } else { "not found" };
    [
        run.predicted_gain.map_or(missed.to_owned(), word),
        run.measured_gain.map_or(NOT_MEASURED.to_owned(), word),
    ]
}

#[cfg(test)]
mod tests {
    use super::causes::tests::{matrix, run};
    use super::*;
    use untax_core::Interval;
    use untax_core::Reading::{Absent, Present};

    #[test]
    fn a_row_says_what_each_run_of_its_server_came_to() {
        let mut idle = run("none-idle", false, None);
        idle.time.idle_s = Present(Seconds(8.0));
        idle.time.unaccounted_s = Present(Seconds(1.0));
        let mut busy = run("none", false, None);
        busy.time.unaccounted_s = Absent("not traced".to_owned());
        let mut throttled = run("cpu-throttled", true, Some([0.5, 0.0]));
        throttled.measured_gain = Some(Gain::measured(Interval::new(1.5, 2.0, 2.5)));
        let matrix = matrix(vec![idle, busy, throttled]);
        assert_eq!(
            row(&matrix, "mysql"),
            "| `mysql` | 10.0 % | not measured | nothing | no gain | 2.00 (1.50–2.50) | not measured \
             | not measured |\n"
        );
        let missing = row(&matrix, "valkey");
        assert_eq!(missing.matches(NOT_MEASURED).count(), 7, "{missing}");
    }
}
