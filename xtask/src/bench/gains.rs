//! Predicted beside measured gains: the table that benches of predictions share.

use std::fmt::Write;
use untax_core::Interval;

/// What the columns mean.
pub const LEGEND: &str = "Predicted: what `untax check` said with the cause, \
    median of its estimate and of its bounds. Measured: median of the paired ratios of throughput \
    with its 95 % interval. Floor: the 95th percentile of the difference between \
    neighbouring trials of the same arm. Errors: predicted less measured, in points of the time that is \
    saved (1 - 1/factor), which is what a tax is a share of, and of the gain. Right: within ten points of \
    the gain, inside the measured interval, or inside the prediction's own bounds alone.";

/// The error up to which a prediction is right, points.
const RIGHT: f64 = 10.0;

/// What was predicted and measured of one load.
pub struct Row {
    /// Its name.
    pub load: String,
    /// The predicted throughput factor.
    pub predicted: Option<Interval>,
    /// The measured one.
    pub measured: Option<Interval>,
    /// What noise alone does, as a part of the throughput.
    pub floor: Option<f64>,
}

/// The table of these loads, without its caption.
pub fn table(rows: impl Iterator<Item = Row>) -> String {
    let mut text = String::from(
        "| load | predicted | measured | floor | error of the time saved | of the gain | right |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let unknown = |what: &str| what.to_owned();
        let floor = row.floor.map(|floor| format!("±{:.1} %", floor * 100.0));
        let [saved, error, right] = match (row.predicted, row.measured) {
            (Some(predicted), Some(measured)) => errors(predicted, measured),
            _ => ["", "", ""].map(unknown),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {saved} | {error} | {right} |",
            row.load,
            row.predicted.map_or(unknown("nothing"), gain),
            row.measured.map_or(unknown("not measured"), gain),
            floor.unwrap_or(unknown("not measured")),
        );
    }
    text
}

fn errors(predicted: Interval, measured: Interval) -> [String; 3] {
    let error = (predicted.mid - measured.mid) * 100.0;
    let saved = (1.0 / measured.mid - 1.0 / predicted.mid) * 100.0;
    let right = if error.abs() <= RIGHT {
        "yes"
    } else if (measured.low..=measured.high).contains(&predicted.mid) {
        "in the interval"
    } else if (predicted.low..=predicted.high).contains(&measured.mid) {
        "in the bounds"
    } else {
        "no"
    };
    [format!("{saved:+.1}"), format!("{error:+.1}"), right.to_owned()]
}

fn gain(factor: Interval) -> String {
    let percent = factor.map(|f| (f - 1.0) * 100.0);
    format!("{:+.1} % ({:+.1} … {:+.1})", percent.mid, percent.low, percent.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_large_gain_is_small_in_time() {
        let tenfold = Interval::new(9.0, 10.0, 11.0);
        assert_eq!(errors(Interval::exact(12.0), tenfold), ["+1.7", "+200.0", "no"]);
        assert_eq!(errors(Interval::exact(10.5), tenfold)[2], "in the interval");
        assert_eq!(errors(Interval::new(5.0, 12.0, 20.0), tenfold)[2], "in the bounds");
        let little = Interval::new(1.15, 1.2, 1.25);
        assert_eq!(errors(Interval::exact(1.28), little), ["+5.2", "+8.0", "yes"]);
    }
}
