//! The result of `untax lab`: whether a cause that was put there was found, and what removing it
//! brought.

use crate::check::{Check, Checked, TimeShares};
use crate::finding::{Finding, Gain, Severity, Tax};
use crate::stats;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The schema's name and version of one run.
pub const SCHEMA: &str = "untax.lab/1";

/// The schema's name and version of many.
pub const MATRIX_SCHEMA: &str = "untax.lab-matrix/1";

/// One cause put on one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabRun {
    /// `untax.lab/1`.
    pub schema: String,
    /// The run's id, under which it is saved.
    pub run: String,
    /// When it was done.
    pub taken_at: Timestamp,
    /// The cause's id; it begins with `none` where nothing was put there.
    pub cause: String,
    /// The engine's id.
    pub engine: String,
    /// How much of the cause was put there: `strong` or `mild`.
    pub dose: String,
    /// Length of each check's window.
    pub window_s: f64,
    /// Whether the check named the cause; for `none`, whether it found anything above info but for what
    /// the hypervisor stole.
    pub found: bool,
    /// The cause's place among the findings with a tax: 1 is the dearest.
    pub rank: Option<u32>,
    /// What the cause takes when that is no time of the database's, so that it has no rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
    /// What the cause took, as the check measured it.
    pub tax: Option<Tax>,
    /// Why the check has no tax of the cause, where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<String>,
    /// What removing it should bring: the medians of what the check and those during the trials
    /// with it predicted, and of their bounds. One that does not name the cause predicts no gain.
    pub predicted_gain: Option<Gain>,
    /// What each of them predicted, the first check at the front; none when none priced the cause.
    #[serde(default)]
    pub predictions: Vec<Gain>,
    /// What removing it brought: the median of paired ratios of throughput.
    pub measured_gain: Option<Gain>,
    /// Whether the check named the cause although it was removed.
    pub found_without: bool,
    /// Throughput of each trial with the cause, transactions or requests a second.
    pub with_per_s: Vec<f64>,
    /// The same without it: the n-th of each are a pair.
    pub without_per_s: Vec<f64>,
    /// Where the time went with the cause.
    pub time: TimeShares,
    /// Where it went without.
    pub time_without: TimeShares,
    /// All findings with the cause; for `none`, those above info.
    pub findings: Vec<Finding>,
    /// The rules that found something without it.
    pub findings_without: Vec<String>,
}

/// What was seen of one database: its own part of a check, and the host's findings.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The database's part.
    pub database: Checked,
    /// What was found of the host.
    pub host: Vec<Finding>,
}

impl Seen {
    /// The part of a check that is about one database, by its main process.
    pub fn of(check: Check, pid: u32) -> Option<Self> {
        let database = check.databases.into_iter().find(|database| database.pid == pid)?;
        Some(Self { database, host: check.findings })
    }

    fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.database.findings.iter().chain(&self.host)
    }

    /// What it predicts of removing a cause: nothing when it does not name it; `None` when it does
    /// and has no price for it.
    pub fn gain(&self, cause: &str) -> Option<Gain> {
        let named = self.findings().find(|finding| finding.rule == cause);
        named.map_or(Some(NO_GAIN), |finding| finding.gain)
    }

    fn rules(&self) -> Vec<String> {
        self.findings().map(|finding| finding.rule.clone()).collect()
    }
}

/// Trials in pairs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs {
    /// Throughput with the cause.
    pub with_per_s: Vec<f64>,
    /// Throughput without it.
    pub without_per_s: Vec<f64>,
    /// What a check during each trial with the cause predicted.
    pub predicted: Vec<Option<Gain>>,
}

/// What a run was of.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// The run's id.
    pub run: String,
    /// The cause's id.
    pub cause: String,
    /// The engine's id.
    pub engine: String,
    /// How much of the cause: `strong` or `mild`.
    pub dose: String,
    /// What the cause takes when that is no time of the database's.
    pub takes: Option<&'static str>,
}

impl LabRun {
    /// Judges two checks and the trials.
    pub fn judge(
        subject: Subject,
        with: Seen,
        without: &Seen,
        pairs: Pairs,
        window_s: f64,
    ) -> Self {
        let Subject { run, cause, engine, dose, takes } = subject;
        let is_none = is_none(&cause);
        let named = |seen: &Seen| {
            let mut findings = seen.findings();
            if is_none {
                findings.any(|f| f.severity > Severity::Info && f.rule != OF_THE_MACHINE)
            } else {
                findings.any(|finding| finding.rule == cause)
            }
        };
        let (found, found_without) = (named(&with), named(without));
        let said = std::iter::once(with.gain(&cause)).chain(pairs.predicted);
        let predictions = predictions(said.collect());
        let mine = with.findings().find(|finding| finding.rule == cause).cloned();
        let rank = rank(&with.database.findings, &cause);
        let gap = with.database.unmeasured.iter().find(|gap| gap.rule == cause);
        let unmeasured = gap.map(|gap| gap.why.clone());
        let measured = stats::paired_ratio(&pairs.without_per_s, &pairs.with_per_s);
        let all = with.database.findings.into_iter().chain(with.host);
        let findings = all.filter(|f| !is_none || f.severity > Severity::Info).collect();
        Self {
            schema: SCHEMA.to_owned(),
            run,
            taken_at: Timestamp::now(),
            cause,
            engine,
            dose,
            window_s,
            found,
            rank,
            takes: takes.map(str::to_owned),
            tax: mine.and_then(|finding| finding.tax),
            unmeasured,
            predicted_gain: median(&predictions),
            predictions,
            measured_gain: measured.map(Gain::from),
            found_without,
            with_per_s: pairs.with_per_s,
            without_per_s: pairs.without_per_s,
            time: with.database.time,
            time_without: without.database.time.clone(),
            findings,
            findings_without: without.rules(),
        }
    }

    /// Whether the check said what it should have.
    pub fn as_expected(&self) -> bool {
        self.found != is_none(&self.cause)
    }
}

/// Whether a cause of this id is no problem.
pub fn is_none(cause: &str) -> bool {
    cause.starts_with("none")
}

/// What the hypervisor takes is there with a cause and without: no fault of a check that tells it.
const OF_THE_MACHINE: &str = "vm-steal";

/// The place of a rule among the findings with a tax that the lab could cause, the dearest being 1.
fn rank(findings: &[Finding], rule: &str) -> Option<u32> {
    let share = |finding: &Finding| finding.tax.as_ref().map(|tax| tax.share);
    let mine = findings.iter().find(|finding| finding.rule == rule).and_then(share)?;
    let others = findings.iter().filter(|finding| finding.rule != OF_THE_MACHINE);
    let dearer = others.filter_map(share).filter(|other| *other > mine).count();
    u32::try_from(dearer + 1).ok()
}

/// Causes on engines, in random order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabMatrix {
    /// `untax.lab-matrix/1`.
    pub schema: String,
    /// The run's id.
    pub run: String,
    /// When it was begun.
    pub taken_at: Timestamp,
    /// The processor.
    pub cpu_model: String,
    /// The kernel.
    pub kernel_release: String,
    /// The seed of the order.
    pub seed: u64,
    /// Whether all were done.
    pub complete: bool,
    /// Each run, in the order in which they were done.
    pub runs: Vec<LabRun>,
    /// What could not be done, and why.
    pub skipped: Vec<Skipped>,
}

/// A cause that could not be put on an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The cause's id.
    pub cause: String,
    /// The engine's id.
    pub engine: String,
    /// Why, and what would make it possible.
    pub why: String,
}

/// The runs of one cause on one engine.
#[derive(Debug, Clone, PartialEq)]
pub struct LabCell<'a> {
    /// The cause's id.
    pub cause: &'a str,
    /// The engine's id.
    pub engine: &'a str,
    /// The runs, in the order in which they were done.
    pub runs: Vec<&'a LabRun>,
}

impl LabMatrix {
    /// The runs by cause and engine, sorted.
    pub fn cells(&self) -> Vec<LabCell<'_>> {
        let mut cells: Vec<LabCell> = Vec::new();
        for run in &self.runs {
            let (cause, engine) = (run.cause.as_str(), run.engine.as_str());
            match cells.iter_mut().find(|cell| cell.cause == cause && cell.engine == engine) {
                Some(cell) => cell.runs.push(run),
                None => cells.push(LabCell { cause, engine, runs: vec![run] }),
            }
        }
        cells.sort_by_key(|cell| (cell.cause, cell.engine));
        cells
    }
}

impl LabCell<'_> {
    /// In how many runs the check said what it should have.
    pub fn as_expected(&self) -> usize {
        self.runs.iter().filter(|run| run.as_expected()).count()
    }

    /// What the cause takes when that is no time of the database's.
    pub fn takes(&self) -> Option<&str> {
        self.runs.first()?.takes.as_deref()
    }

    /// In how many the cause was found, and the dearest.
    pub fn first(&self) -> usize {
        self.runs.iter().filter(|run| run.found && run.rank == Some(1)).count()
    }

    /// The gain over all pairs of all runs.
    pub fn measured_gain(&self) -> Option<Gain> {
        let all = |side: fn(&LabRun) -> &Vec<f64>| -> Vec<f64> {
            self.runs.iter().flat_map(|run| side(run).iter().copied()).collect()
        };
        let (with, without) = (all(|run| &run.with_per_s), all(|run| &run.without_per_s));
        stats::paired_ratio(&without, &with).map(Gain::from)
    }

    /// What the checks predicted: the medians of their middles and of their bounds.
    pub fn predicted_gain(&self) -> Option<Gain> {
        let said = self.runs.iter().flat_map(|run| run.predictions.iter().copied());
        median(&said.collect::<Vec<_>>())
    }

    /// How far apart trials are that follow each other and are of the same kind: what noise alone
    /// does.
    pub fn floor(&self) -> Option<f64> {
        let ratios = self.runs.iter().flat_map(|r| followers(&r.with_per_s, &r.without_per_s));
        stats::noise_floor(&ratios.collect::<Vec<_>>())
    }

    /// The middle of the taxes.
    pub fn tax(&self) -> Option<f64> {
        let shares: Vec<f64> =
            self.runs.iter().filter_map(|run| Some(run.tax.as_ref()?.share)).collect();
        stats::median(&shares)
    }
}

/// What who does not name a cause predicts of it.
const NO_GAIN: Gain = Gain { factor: 1.0, low: 1.0, high: 1.0 };

/// What checks of the same cause predicted, those that had a price; none unless one named it.
fn predictions(said: Vec<Option<Gain>>) -> Vec<Gain> {
    let named = said.iter().flatten().any(|gain| *gain != NO_GAIN);
    said.into_iter().flatten().filter(|_| named).collect()
}

/// The medians of the middles and of the bounds.
fn median(predictions: &[Gain]) -> Option<Gain> {
    let of =
        |bound: fn(&Gain) -> f64| stats::median(&predictions.iter().map(bound).collect::<Vec<_>>());
    Some(Gain { factor: of(|g| g.factor)?, low: of(|g| g.low)?, high: of(|g| g.high)? })
}

/// Ratios of trials that follow each other and are of the same kind: the first pair begins with
/// the cause, the next without it, and so on.
fn followers(with: &[f64], without: &[f64]) -> Vec<f64> {
    let kinds = [without, with].into_iter().cycle();
    let ratio = |(pair, kind): (usize, &[f64])| Some(kind.get(pair)? / kind.get(pair + 1)?);
    (0..with.len()).zip(kinds).filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    fn finding(rule: &str, share: Option<f64>) -> Finding {
        Finding {
            rule: rule.to_owned(),
            severity: Severity::Medium,
            summary: String::new(),
            fix: String::new(),
            evidence: Vec::new(),
            tax: share.map(|share| Tax::new(Interval::exact(share), "")),
            gain: None,
            remedy: None,
        }
    }

    #[test]
    fn the_floor_is_of_trials_that_follow_each_other() {
        assert_eq!(followers(&[1.0, 2.0, 8.0], &[3.0, 6.0, 5.0]), [0.5, 0.25]);
        assert!(followers(&[1.0], &[2.0]).is_empty());
    }

    #[test]
    fn who_does_not_name_a_cause_predicts_nothing_of_it() {
        let gain = |factor: f64| Gain { factor, low: factor - 0.25, high: factor + 0.5 };
        let each = predictions(vec![Some(gain(2.0)), Some(NO_GAIN), None, Some(gain(1.5))]);
        assert_eq!(each.iter().map(|gain| gain.factor).collect::<Vec<_>>(), [2.0, 1.0, 1.5]);
        assert_eq!(median(&each), Some(Gain { factor: 1.5, low: 1.25, high: 2.0 }));
        assert_eq!(median(&predictions(vec![Some(NO_GAIN), None])), None);
    }

    #[test]
    fn the_rank_is_the_place_among_those_with_a_tax() {
        let findings = [finding("a", None), finding("b", Some(0.4)), finding("c", Some(0.1))];
        assert_eq!(rank(&findings, "a"), None);
        assert_eq!(rank(&findings, "b"), Some(1));
        assert_eq!(rank(&findings, "c"), Some(2));
        assert_eq!(rank(&findings, "d"), None);
        let stolen = [finding(OF_THE_MACHINE, Some(0.5)), finding("b", Some(0.4))];
        assert_eq!(rank(&stolen, "b"), Some(1), "nobody in the lab steals");
    }
}
