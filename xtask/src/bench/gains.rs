//! Predicted beside measured gains: the table that benches of predictions share.
//!
//! Arm A suffers from the cause and arm B does not; what a check said of it is in the trials of
//! arm A, under `gain`.

use super::trials::Trials;
use std::fmt::Write;
use untax_core::{Interval, stats};

/// What the columns mean.
pub const LEGEND: &str = "Predicted: what `untax check` said during the trials with the cause, \
    median of its estimate and of its bounds. Measured: median of the paired ratios of throughput \
    with its 95 % bootstrap interval. Floor: the 95th percentile of the difference between \
    neighbouring trials of the same arm.";

/// The error up to which a prediction is right, points.
const RIGHT: f64 = 10.0;

/// The table over these loads, without its caption.
pub fn table<'a>(trials: &Trials, loads: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from(
        "| load | predicted | measured | floor | error, points | within 10 points or the noise |\n\
         |---|---|---|---|---|---|\n",
    );
    for load in loads {
        let [predicted, measured, floor, error, right] = row(trials, load);
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "| `{load}` | {predicted} | {measured} | {floor} | {error} | {right} |");
    }
    text
}

fn row(trials: &Trials, load: &str) -> [String; 5] {
    let measured = trials.ratio(load, "B", "A");
    let said = predicted(trials, load);
    let unknown = |what: &str| what.to_owned();
    let floor = trials.floor(load);
    let floor = floor.map_or(unknown("not measured"), |floor| format!("±{:.1} %", floor * 100.0));
    let [error, right] = match (said, measured) {
        (Some(said), Some(measured)) => {
            let error = (said.mid - measured.mid) * 100.0;
            let noise = (measured.low..=measured.high).contains(&said.mid);
            let right = match (error.abs() <= RIGHT, noise) {
                (true, _) => "yes",
                (false, true) => "yes, inside the interval",
                (false, false) => "no",
            };
            [format!("{error:+.1}"), right.to_owned()]
        }
        _ => ["", ""].map(unknown),
    };
    let said = said.map_or(unknown("nothing"), gain);
    [said, measured.map_or(unknown("not measured"), gain), floor, error, right]
}

/// The predictions of one load: the medians of the middles and of the bounds.
fn predicted(trials: &Trials, load: &str) -> Option<Interval> {
    let of = |bound: &str| -> Option<f64> {
        let values: Vec<f64> = trials
            .made
            .iter()
            .filter(|trial| trial.load == load && trial.arm == "A")
            .filter_map(|trial| trial.check.as_ref()?["gain"][bound].as_f64())
            .collect();
        stats::median(&values)
    };
    Some(Interval::new(of("low")?, of("factor")?, of("high")?))
}

fn gain(factor: Interval) -> String {
    let percent = factor.map(|f| (f - 1.0) * 100.0);
    format!("{:+.1} % ({:+.1} … {:+.1})", percent.mid, percent.low, percent.high)
}
