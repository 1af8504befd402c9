//! What the rules of today say of recorded windows.

use super::cases::{CASES, Case};
use crate::paths;
use anyhow::Context;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use untax_core::truth::Recorded;
use untax_core::{Gain, Interval, Reading, Tax, stats};

/// Where recordings are.
pub fn folder() -> PathBuf {
    paths::root().join("tests/truth")
}

/// The file of a case.
pub fn file(case: &Case) -> PathBuf {
    folder().join(format!("{}.json.gz", case.id))
}

/// A recording, as the rules of today judge it.
pub struct Replayed {
    /// The case.
    pub case: &'static Case,
    /// When it was recorded.
    pub taken_at: String,
    /// Whether a check found it, and its place among the findings with a tax: in most windows.
    pub rank: Option<usize>,
    /// The medians of what the checks said.
    pub tax: Option<f64>,
    pub predicted: Option<Gain>,
    pub latency: Option<Gain>,
    /// What removing it brought.
    pub measured: Option<Gain>,
    /// Whether the windows hold whom threads waited for.
    pub has_chains: bool,
}

impl Replayed {
    /// Whether the measured gain, or a part of its interval, lies within the prediction, both as they are written: to
    /// two places. Nothing is predicted of a cause that is not found, which is a gain of just one.
    pub fn is_hit(&self) -> bool {
        let written = |value: f64| (value * 100.0).round();
        let overlap = |(predicted, measured): (Gain, Gain)| {
            written(predicted.low) <= written(measured.high)
                && written(measured.low) <= written(predicted.high)
        };
        self.predicted.zip(self.measured).is_some_and(overlap)
    }
}

/// All cases that are recorded.
pub fn all() -> anyhow::Result<Vec<Replayed>> {
    CASES.iter().filter(|case| file(case).is_file()).map(replayed).collect()
}

/// One case.
fn replayed(case: &'static Case) -> anyhow::Result<Replayed> {
    let path = file(case);
    let mut text = String::new();
    flate2::read::GzDecoder::new(File::open(&path)?).read_to_string(&mut text)?;
    let recorded: Recorded =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let rule = &recorded.run.cause;
    let (mut ranks, mut taxes, mut gains, mut latencies) = (vec![], vec![], vec![], vec![]);
    for window in &recorded.windows {
        let check = untax_rules::check(window, String::new(), Reading::absent("a recording"));
        let Some(database) = check.databases.first() else { continue };
        let findings = database.findings.iter().filter(|finding| finding.tax.is_some());
        let found = database.findings.iter().find(|finding| finding.rule == *rule);
        ranks.extend(findings.map(|f| &f.rule).position(|found| found == rule).map(|at| at + 1));
        let share = |tax: &Tax| tax.share;
        taxes.extend(found.and_then(|finding| finding.tax.as_ref()).map(share));
        gains.extend(found.map_or(Some(Gain::NONE), |finding| finding.gain));
        latencies.extend(found.and_then(|finding| finding.latency_gain));
    }
    ranks.sort_unstable();
    Ok(Replayed {
        case,
        taken_at: recorded.run.taken_at.to_string(),
        rank: ranks.get(recorded.windows.len() / 2).copied(),
        tax: stats::median(&taxes),
        predicted: median(&gains),
        latency: median(&latencies),
        measured: recorded.run.measured_gain,
        has_chains: text.contains("\"followed\":true"),
    })
}

/// The medians of the middles and of the bounds.
fn median(gains: &[Gain]) -> Option<Gain> {
    let of = |bound: fn(&Gain) -> f64| stats::median(&gains.iter().map(bound).collect::<Vec<_>>());
    Some(Gain::measured(Interval::new(of(|g| g.low)?, of(|g| g.factor)?, of(|g| g.high)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_hold_what_was_measured_but_for_the_misses_that_are_named() {
        let all = all().expect("recordings can be read");
        assert!(!all.is_empty(), "no recording in {}", folder().display());
        let wrong: Vec<String> = all
            .iter()
            .filter(|replayed| replayed.is_hit() == replayed.case.miss.is_some())
            .map(|r| format!("{}: {:?}, measured {:?}", r.case.id, r.predicted, r.measured))
            .collect();
        assert!(wrong.is_empty(), "change `miss` in cases.rs, or the model:\n{}", wrong.join("\n"));
    }

    #[test]
    fn loads_that_clients_decide_are_promised_no_throughput() {
        let all = all().expect("recordings can be read");
        let decided = ["cpu-contended-thinking", "cpu-contended-paced", "cpu-throttled-paced"];
        for replayed in all.iter().filter(|replayed| decided.contains(&replayed.case.id)) {
            let factor = replayed.predicted.map_or(1.0, |gain| gain.factor);
            let measured = replayed.measured.map_or(1.0, |gain| gain.high);
            let most = measured.max(1.0) * 1.25;
            assert!(factor <= most, "{}: {:?}", replayed.case.id, replayed.predicted);
        }
    }
}
