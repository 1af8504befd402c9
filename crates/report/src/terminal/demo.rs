//! The story of `untax demo`: one cause, from the symptom to the proof.

use super::Style;
use super::check::{commands, finding};
use super::screen::{Ink, Screen, span};
use crate::format;
use untax_core::lab::LabRun;
use untax_core::stats::median;

/// Where the text of a chapter starts.
const COLUMN: usize = 12;

/// What was done to a scratch database, what a check said of it, and what its removal brought.
pub fn demo(run: &LabRun, done: &str, style: Style) -> String {
    let mut screen = Screen::new(style);
    let headline = if run.as_expected() {
        "Found, predicted, removed, and measured."
    } else {
        "This time it was not found as it should be."
    };
    screen.line(&[span(Ink::Bold, headline)]);
    screen.blank();
    screen.labelled("Done to it", COLUMN, Ink::Plain, done, 3);
    let seconds = format!("what untax check says of it after {:.0} s:", run.window_s);
    screen.labelled("Found", COLUMN, Ink::Plain, &seconds, 1);
    match run.findings.iter().find(|found| found.rule == run.cause) {
        Some(found) => finding(&mut screen, found),
        None => screen.labelled("", COLUMN, Ink::Red, &format!("not {}", run.cause), 1),
    }
    screen.blank();
    let gain = run.predicted_gain.as_ref().map_or(format::NOT_MEASURED.to_owned(), format::gain);
    screen.labelled("Predicted", COLUMN, Ink::Plain, &format!("{gain} without it"), 1);
    screen.labelled("Measured", COLUMN, Ink::Bold, &measured(run), 3);
    let gone =
        "the scratch database, its files and the limit are gone; no other database was touched";
    screen.labelled("Put back", COLUMN, Ink::Plain, gone, 2);
    screen.blank();
    let next = [
        ("untax check".to_owned(), "what your databases pay, and for what"),
        (format!("untax explain {}", run.cause), "how it is measured and fixed"),
        ("untax lab list".to_owned(), "other causes to try"),
    ];
    commands(&mut screen, COLUMN, &next);
    screen.finish()
}

/// Throughput with the cause and without it, and what that is worth.
fn measured(run: &LabRun) -> String {
    let Some(gain) = &run.measured_gain else {
        return format!("{}: too few pairs of trials counted", format::NOT_MEASURED);
    };
    let [with, without] = [&run.with_per_s, &run.without_per_s]
        .map(|per_s| median(per_s).map_or("none".into(), format::number));
    let pairs = run.with_per_s.len();
    format!(
        "{}: {with} transactions per second with it, {without} without it; {pairs} alternating pairs of trials",
        format::gain(gain)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::lab::tests::cell;
    use untax_core::check::TimeShares;
    use untax_core::{Gain, Interval};

    const PLAIN: Style = Style { colour: false, width: 80 };

    #[test]
    fn the_story_ends_with_what_was_measured_beside_what_was_predicted() {
        let gain = |factor| Gain::measured(Interval::new(factor - 0.5, factor, factor + 0.5));
        let run = LabRun {
            predicted_gain: Some(gain(3.0)),
            measured_gain: Some(gain(2.0)),
            ..cell(&TimeShares::unknown("not needed"))
        };
        let told = demo(&run, "a limit", PLAIN).replace(format::THIN, " ");
        assert!(told.contains("Predicted   3.00× (2.50–3.50) without it"), "{told}");
        assert!(told.contains("110 transactions per second with it"), "{told}");
    }

    #[test]
    fn trials_that_do_not_count_are_no_number() {
        let told = demo(&cell(&TimeShares::unknown("not needed")), "a limit", PLAIN);
        assert!(told.contains("Measured    not measured: too few pairs"), "{told}");
        assert!(told.contains("not postgres-full-page-writes"), "{told}");
    }
}
