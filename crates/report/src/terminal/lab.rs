//! The screens of `untax lab`.

use super::Style;
use super::screen::{Ink, Screen, pad, pad_left, span};
use crate::format;
use untax_core::check::TimeShares;
use untax_core::lab::{Failed, LabCell, LabMatrix, LabRun, is_none};
use untax_core::sleeps::Summary;
use untax_core::{Reading, Seconds};

/// Where labels end.
const COLUMN: usize = 16;

/// One cause on one engine.
pub fn lab(run: &LabRun, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.line(&[span(Ink::Bold, headline(run))]);
    screen.blank();
    let mut say = |label: &str, text: &str| screen.labelled(label, COLUMN, Ink::Plain, text, 3);
    if let Some(rank) = run.rank {
        say("Rank", &format!("{rank} among the findings with a tax"));
    }
    if !is_none(&run.cause) {
        match &run.takes {
            Some(takes) => say("Takes", takes),
            None => say("Tax", &format::tax_or_not(run.tax.as_ref())),
        }
        if run.found_without {
            say("Tax without", &format::tax_or_not(run.tax_without.as_ref()));
        }
        let gain = run.predicted_gain.as_ref().map(format::gain);
        say("Predicted gain", &gain.unwrap_or_else(|| format::NOT_MEASURED.to_owned()));
    }
    for (arm, label, text) in [(0, "Idle CPUs", "with it"), (1, "", "without")] {
        let of = run.sleeps.iter().filter_map(|both| both[arm].as_ref());
        if let Some(sleeps) = Summary::of(of) {
            say(label, &format!("{text}: {sleeps}"));
        }
    }
    if let Some(treatment) = &run.treatment {
        say("Treatment", treatment);
    }
    let gain = run.measured_gain.as_ref().map(format::gain);
    say("Measured gain", &gain.unwrap_or_else(|| format::NOT_MEASURED.to_owned()));
    say("Time with it", &time(&run.time));
    say("Time without", &time(&run.time_without));
    let findings: Vec<&str> = run.findings.iter().map(|finding| finding.rule.as_str()).collect();
    say("Findings", &or_none(&findings.join(", ")));
    say("Without it", &or_none(&run.findings_without.join(", ")));
    screen.finish()
}

fn headline(run: &LabRun) -> String {
    let engine = &run.engine;
    match (is_none(&run.cause), run.found) {
        (true, false) => format!("Nothing was done to {engine}, and nothing found."),
        (true, true) => format!("Nothing was done to {engine}, and yet something found."),
        (false, true) if run.as_expected() => format!("{} on {engine} was found.", run.cause),
        (false, true) => format!("{} on {engine} was found, and NO LESS without it.", run.cause),
        (false, false) => format!("{} on {engine} was NOT found.", run.cause),
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

/// The parts that are not nothing, in percent of the active time.
pub fn time(time: &TimeShares) -> String {
    let Some(active) = time.active_s.value().filter(|active| active.0 > 0.0) else {
        return format::value_or_why(&time.active_s, |_| "idle".to_owned());
    };
    let parts: [(&str, &Reading<Seconds>); 9] = [
        ("on CPU", &time.on_cpu_s),
        ("of it page faults", &time.minor_faults_s),
        ("runnable", &time.runnable_s),
        ("of it throttled", &time.throttled_s),
        ("of it waking CPUs", &time.wake_up_s),
        ("disk", &time.disk_s),
        ("reclaim", &time.reclaim_s),
        ("lock", &time.lock_s),
        ("network", &time.network_s),
    ];
    let shares = parts.iter().filter_map(|(name, seconds)| {
        let share = seconds.value()?.0 / active.0;
        (share >= 0.005).then(|| format!("{name} {}", format::percent(share)))
    });
    shares.chain(crate::time::unknown(time)).collect::<Vec<_>>().join(", ")
}

/// Many causes on many engines.
pub fn lab_matrix(matrix: &LabMatrix, style: Style) -> String {
    let mut screen = Screen::new(style);
    let (expected, tries) = (matrix.as_expected(), matrix.tries());
    let head = format!("{expected} of {tries} checks gave the expected result.");
    screen.line(&[span(Ink::Bold, head)]);
    screen.blank();
    screen.line(&[span(
        Ink::Dim,
        row(["cause", "engine", "found", "first", "tax", "predicted", "measured"]),
    )]);
    for cell in matrix.cells() {
        let ink = if cell.as_expected() == cell.tries() { Ink::Plain } else { Ink::Red };
        screen.line(&[span(ink, row(columns(&cell).each_ref().map(String::as_str)))]);
    }
    for Failed { cause, engine, repeat, why } in &matrix.failed {
        let text = format!("{cause} on {engine}, run {repeat}: {why}");
        screen.labelled("Failed", COLUMN, Ink::Red, &text, 2);
    }
    for skipped in &matrix.skipped {
        let text = format!("{} on {}: {}", skipped.cause, skipped.engine, skipped.why);
        screen.labelled("Not done", COLUMN, Ink::Dim, &text, 2);
    }
    screen.finish()
}

/// What a table says of a cause on an engine: cause, engine, found, dearest, tax and gains.
pub fn columns(cell: &LabCell) -> [String; 7] {
    let of = |count: usize| format!("{count}/{}", cell.tries());
    let found = cell.runs.iter().filter(|run| run.found).count();
    let none = || "–".to_owned();
    [
        cell.cause.to_owned(),
        cell.engine.to_owned(),
        of(found),
        if is_none(cell.cause) || cell.takes().is_some() { none() } else { of(cell.first()) },
        cell.tax().map_or_else(none, format::percent),
        cell.predicted_gain().as_ref().map_or_else(none, format::gain),
        cell.measured_gain().as_ref().map_or_else(none, format::gain),
    ]
}

fn row(cells: [&str; 7]) -> String {
    let [cause, engine, found, first, tax, predicted, measured] = cells;
    // The intervals are in the page; here they would not fit.
    let [predicted, measured] =
        [predicted, measured].map(|gain| gain.split(' ').next().unwrap_or(gain));
    let numbers = [(found, 6), (first, 6), (tax, 8), (predicted, 11), (measured, 10)];
    let numbers: String = numbers.iter().map(|(text, room)| pad_left(text, *room)).collect();
    format!("{}{}{numbers}", pad(cause, 26), pad(engine, 11))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use untax_core::lab::MATRIX_SCHEMA;

    pub(in crate::terminal) fn cell(time: &TimeShares) -> LabRun {
        LabRun {
            schema: untax_core::lab::SCHEMA.to_owned(),
            run: "lab-1".to_owned(),
            taken_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            cause: "postgres-full-page-writes".to_owned(),
            engine: "postgres".to_owned(),
            dose: "strong".to_owned(),
            load: None,
            beside: None,
            window_s: 5.0,
            found: true,
            rank: Some(1),
            takes: None,
            treatment: None,
            sleeps: Vec::new(),
            unmeasured: None,
            tax: None,
            predicted_gain: None,
            predictions: Vec::new(),
            measured_gain: None,
            found_without: false,
            tax_without: None,
            milder_without: false,
            with_per_s: vec![100.0, 110.0, 120.0],
            without_per_s: vec![200.0, 220.0, 240.0],
            with_first: Vec::new(),
            seed: None,
            spoiled: Vec::new(),
            lost_pairs: 0,
            time: time.clone(),
            time_without: time.clone(),
            findings: Vec::new(),
            findings_without: Vec::new(),
        }
    }

    fn time() -> TimeShares {
        let seconds = |s: f64| Reading::Present(Seconds(s));
        TimeShares {
            active_s: seconds(10.0),
            on_cpu_s: seconds(2.5),
            minor_faults_s: seconds(0.5),
            runnable_s: seconds(7.5),
            disk_s: seconds(0.01),
            idle_s: seconds(30.0),
            ..TimeShares::unknown("no limit")
        }
    }

    #[test]
    fn time_is_told_in_shares_of_the_active_time() {
        let said = super::time(&time()).replace(format::THIN, " ");
        assert_eq!(said, "on CPU 25 %, of it page faults 5.0 %, runnable 75 %");
    }

    fn matrix() -> LabMatrix {
        LabMatrix {
            schema: MATRIX_SCHEMA.to_owned(),
            run: "lab-matrix-1".to_owned(),
            taken_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            cpu_model: String::new(),
            kernel_release: String::new(),
            seed: 1,
            complete: true,
            runs: vec![cell(&time())],
            failed: Vec::new(),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn what_failed_counts_and_is_listed() {
        let mut matrix = matrix();
        matrix.fail("postgres-full-page-writes", "postgres", "no load".to_owned());
        let screen = lab_matrix(&matrix, Style::default());
        assert!(screen.starts_with("1 of 2 checks gave the expected result."), "{screen}");
        assert!(screen.contains("postgres      1/2   1/2"), "{screen}");
        assert!(screen.contains("Failed") && screen.contains("run 2: no load"), "{screen}");
    }

    #[test]
    fn what_is_found_without_its_cause_no_less_is_not_found() {
        let run = LabRun { found_without: true, ..cell(&time()) };
        let screen = lab(&run, Style::default());
        assert!(screen.contains("was found, and NO LESS without it."), "{screen}");
    }

    #[test]
    fn a_row_fits_and_shows_the_measured_factor() {
        let screen = lab_matrix(&matrix(), Style::default());
        assert!(screen.starts_with("1 of 1 checks gave the expected result."), "{screen}");
        let row = screen.lines().last().unwrap();
        assert!(row.starts_with("postgres-full-page-writes postgres      1/1   1/1"), "{row}");
        assert!(row.ends_with("2.00×") && !screen.contains('…'), "{screen}");
    }
}
