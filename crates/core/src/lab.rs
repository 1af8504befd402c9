//! The result of `untax lab`: whether a cause that was put there was found, and what removing it
//! brought.

use crate::check::{Check, Checked, TimeShares};
use crate::finding::{Finding, Severity, Tax};
use crate::sleeps::Sleeps;
use crate::{Gain, stats, verdict};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

mod subject;

pub use subject::Subject;

/// The schema's name and version of one run.
pub const SCHEMA: &str = "untax.lab/1";

/// The schema's name and version of many.
pub const MATRIX_SCHEMA: &str = "untax.lab-matrix/1";

/// One cause put on one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// The load, where it is not the cause's own: `thinking` or `paced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// The cause that was there all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Length of each check's window.
    pub window_s: f64,
    /// Whether the check named the cause: where it does so without it, too, above info or with a
    /// larger tax. For `none`, whether it found anything above info but for what the hypervisor
    /// stole.
    pub found: bool,
    /// The cause's place among the findings with a tax: 1 is the dearest.
    pub rank: Option<u32>,
    /// What the cause takes when that is no time of the database's, so that it has no rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
    /// What is set with the cause and without it, where machines differ in that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub treatment: Option<String>,
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
    /// What was left of its tax by that check; none where there was none, or it was not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tax_without: Option<Tax>,
    /// Whether what it said of it then was less severe.
    #[serde(default)]
    pub milder_without: bool,
    /// Throughput of each trial with the cause, transactions or requests a second.
    pub with_per_s: Vec<f64>,
    /// The same without it: the n-th of each are a pair.
    pub without_per_s: Vec<f64>,
    /// Whether the trial with the cause came first in each of these pairs; empty in older runs, where the
    /// pairs began with and without it by turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_first: Vec<bool>,
    /// How idle CPUs slept beside the trials of each of these pairs, with the cause and without it; older runs
    /// do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sleeps: Vec<[Option<Sleeps>; 2]>,
    /// What the order of the trials was drawn from; older runs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Trials that count for nothing, because a guard was exceeded; `applied` is without the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<verdict::Trial>,
    /// Pairs that are left out, because a trial of theirs was spoiled twice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_pairs: u32,
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
        self.finding(cause).map_or(Some(Gain::NONE), |finding| finding.gain)
    }

    /// What it says of a cause.
    fn finding(&self, cause: &str) -> Option<&Finding> {
        self.findings().find(|finding| finding.rule == cause)
    }

    /// Whether it found anything of a server that nothing was done to.
    fn found_anything(&self) -> bool {
        self.findings().any(|f| f.severity > Severity::Info && f.rule != OF_THE_MACHINE)
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
    /// Whether the trial with the cause came first in each pair.
    pub with_first: Vec<bool>,
    /// How idle CPUs slept beside both trials of each pair.
    pub sleeps: Vec<[Option<Sleeps>; 2]>,
    /// What the order was drawn from.
    pub seed: u64,
    /// Trials that count for nothing.
    pub spoiled: Vec<verdict::Trial>,
    /// Pairs that are left out for such trials.
    pub lost: u32,
}

/// For fields that JSON leaves out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
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
        let Subject { run, cause, engine, dose, load, beside, takes, treatment } = subject;
        let is_none = is_none(&cause);
        let (mine, left) = (with.finding(&cause).cloned(), without.finding(&cause));
        let (found, found_without) = if is_none {
            (with.found_anything(), without.found_anything())
        } else {
            (tells(mine.as_ref(), left), left.is_some())
        };
        let said = std::iter::once(with.gain(&cause)).chain(pairs.predicted);
        let predictions = predictions(said.collect());
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
            load: load.map(str::to_owned),
            beside: beside.map(str::to_owned),
            window_s,
            found,
            rank,
            takes: takes.map(str::to_owned),
            treatment,
            tax: mine.as_ref().and_then(|finding| finding.tax.clone()),
            unmeasured,
            predicted_gain: median(&predictions),
            predictions,
            measured_gain: measured.map(Gain::measured),
            found_without,
            tax_without: left.and_then(|finding| finding.tax.clone()),
            milder_without: left.zip(mine.as_ref()).is_some_and(|(l, m)| l.severity < m.severity),
            with_per_s: pairs.with_per_s,
            without_per_s: pairs.without_per_s,
            with_first: pairs.with_first,
            sleeps: pairs.sleeps,
            seed: Some(pairs.seed),
            spoiled: pairs.spoiled,
            lost_pairs: pairs.lost,
            time: with.database.time,
            time_without: without.database.time.clone(),
            findings,
            findings_without: without.rules(),
        }
    }

    /// Whether the check said what it should have: no rule passes that says the same of a cause
    /// whether it is there or not.
    pub fn as_expected(&self) -> bool {
        if is_none(&self.cause) {
            return !self.found;
        }
        let (with, without) = (self.tax.as_ref(), self.tax_without.as_ref());
        // What has no tax is told by how much it matters.
        let less = match (with, without) {
            (None, None) => self.milder_without,
            _ => is_dearer(with, without),
        };
        self.found && (!self.found_without || less)
    }

    /// Its cause and engine.
    pub fn key(&self) -> (&str, &str) {
        (&self.cause, &self.engine)
    }
}

/// Whether a cause of this id is no problem.
pub fn is_none(cause: &str) -> bool {
    cause.starts_with("none")
}

/// What the hypervisor takes is there with a cause and without: no fault of a check that tells it.
const OF_THE_MACHINE: &str = "vm-steal";

/// Taxes closer to each other than this share of a database's time are the same: less is nothing to
/// rules, too.
const LEAST: f64 = 0.02;

/// Whether what is said of a cause while it is there tells that it is, by what is said without it.
fn tells(with: Option<&Finding>, without: Option<&Finding>) -> bool {
    let (Some(with), Some(without)) = (with, without) else { return with.is_some() };
    with.severity > Severity::Info || is_dearer(with.tax.as_ref(), without.tax.as_ref())
}

/// Whether a cause took more while it was there than what was left of it. Where there is no tax of
/// what was left, it is none that rules could measure.
fn is_dearer(with: Option<&Tax>, without: Option<&Tax>) -> bool {
    let share = |tax: Option<&Tax>| tax.map_or(0.0, |tax| tax.share);
    share(with) - share(without) >= LEAST
}

/// The place of a rule among the findings with a tax that the lab could cause, the dearest being 1.
fn rank(findings: &[Finding], rule: &str) -> Option<u32> {
    let share = |finding: &Finding| finding.tax.as_ref().map(|tax| tax.share);
    let mine = findings.iter().find(|finding| finding.rule == rule).and_then(share)?;
    let others = findings.iter().filter(|finding| finding.rule != OF_THE_MACHINE);
    let dearer = others.filter_map(share).filter(|other| *other > mine).count();
    u32::try_from(dearer + 1).ok()
}

/// Causes on engines, in random order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Each run that failed, in this order, too.
    #[serde(default)]
    pub failed: Vec<Failed>,
    /// What this machine cannot do, and why.
    pub skipped: Vec<Skipped>,
}

/// A run that failed, although its cause is possible: a server that was killed, a load that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failed {
    /// The cause's id.
    pub cause: String,
    /// The engine's id.
    pub engine: String,
    /// Which run of them it was, those that failed included; the first is 1.
    pub repeat: usize,
    /// What went wrong.
    pub why: String,
}

impl Failed {
    /// Its cause and engine.
    pub fn key(&self) -> (&str, &str) {
        (&self.cause, &self.engine)
    }
}

/// A cause that could not be put on an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// How many more failed.
    pub failed: usize,
}

impl LabMatrix {
    /// The runs by cause and engine, sorted; of some all may have failed.
    pub fn cells(&self) -> Vec<LabCell<'_>> {
        let keys: BTreeSet<(&str, &str)> = self.keys().collect();
        let cells = keys.into_iter().map(|(cause, engine)| LabCell {
            cause,
            engine,
            runs: self.runs.iter().filter(|run| run.key() == (cause, engine)).collect(),
            failed: self.failed.iter().filter(|run| run.key() == (cause, engine)).count(),
        });
        cells.collect()
    }

    /// Notes that one more run of this cause on this engine failed, and why.
    pub fn fail(&mut self, cause: &str, engine: &str, why: String) {
        let repeat = self.keys().filter(|key| *key == (cause, engine)).count() + 1;
        let (cause, engine) = (cause.to_owned(), engine.to_owned());
        self.failed.push(Failed { cause, engine, repeat, why });
    }

    /// How many runs there were, those that failed included.
    pub fn tries(&self) -> usize {
        self.runs.len() + self.failed.len()
    }

    /// In how many of them the check said what it should have.
    pub fn as_expected(&self) -> usize {
        self.runs.iter().filter(|run| run.as_expected()).count()
    }

    /// The cause and engine of each run, those that failed included.
    fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.runs.iter().map(LabRun::key).chain(self.failed.iter().map(Failed::key))
    }
}

impl LabCell<'_> {
    /// How many runs there were, those that failed included.
    pub fn tries(&self) -> usize {
        self.runs.len() + self.failed
    }

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
        stats::paired_ratio(&without, &with).map(Gain::measured)
    }

    /// What the checks predicted: the medians of their middles and of their bounds.
    pub fn predicted_gain(&self) -> Option<Gain> {
        let said = self.runs.iter().flat_map(|run| run.predictions.iter().copied());
        median(&said.collect::<Vec<_>>())
    }

    /// How far apart trials are that follow each other and are of the same kind: what noise alone
    /// does.
    pub fn floor(&self) -> Option<f64> {
        let ratios = self.runs.iter().flat_map(|run| followers(run));
        stats::noise_floor(&ratios.collect::<Vec<_>>())
    }

    /// The middle of the taxes.
    pub fn tax(&self) -> Option<f64> {
        self.middle(|run| run.tax.as_ref())
    }

    /// In how many runs the check named the cause although it was removed.
    pub fn found_without(&self) -> usize {
        self.runs.iter().filter(|run| run.found_without).count()
    }

    /// The middle of what was left of the taxes then.
    pub fn tax_without(&self) -> Option<f64> {
        self.middle(|run| run.tax_without.as_ref())
    }

    fn middle(&self, tax: fn(&LabRun) -> Option<&Tax>) -> Option<f64> {
        let taxes = self.runs.iter().copied().filter_map(tax);
        stats::median(&taxes.map(|tax| tax.share).collect::<Vec<_>>())
    }
}

/// What checks of the same cause predicted, those that had a price; none unless one named it.
fn predictions(said: Vec<Option<Gain>>) -> Vec<Gain> {
    let named = said.iter().flatten().any(|gain| *gain != Gain::NONE);
    said.into_iter().flatten().filter(|_| named).collect()
}

/// The medians of the middles and of the bounds.
fn median(predictions: &[Gain]) -> Option<Gain> {
    let of =
        |bound: fn(&Gain) -> f64| stats::median(&predictions.iter().map(bound).collect::<Vec<_>>());
    Some(Gain { factor: of(|g| g.factor)?, low: of(|g| g.low)?, high: of(|g| g.high)? })
}

/// Ratios of trials that follow each other and are of the same kind: where one pair ends with the cause
/// and the next begins with it, or both without it. In older runs the first pair begins with the cause, the
/// next without it, and so on.
fn followers(run: &LabRun) -> Vec<f64> {
    let with_first =
        |pair: usize| run.with_first.get(pair).copied().unwrap_or(pair.is_multiple_of(2));
    let is_same = |pair: &usize| with_first(*pair) != with_first(*pair + 1);
    let ratio = |pair: usize| {
        let kind = if with_first(pair) { &run.without_per_s } else { &run.with_per_s };
        Some(kind.get(pair)? / kind.get(pair + 1)?)
    };
    (0..run.with_per_s.len()).filter(is_same).filter_map(ratio).collect()
}

#[cfg(test)]
mod tests;
