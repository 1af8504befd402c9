//! What a run says at its end: the time of each stage, the slowest tests, what was skipped and why,
//! and what failed.

use super::run::{Outcome, Verdict, line};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// How many of the slowest tests are listed.
const SLOWEST: usize = 10;

/// How many names stand behind a reason before they are only counted.
const NAMES: usize = 3;

/// The stages that have run.
pub struct Report {
    begun: Instant,
    stages: Vec<Stage>,
    left: Option<String>,
}

struct Stage {
    name: &'static str,
    took: Duration,
    outcomes: Vec<Outcome>,
}

impl Report {
    pub fn new() -> Self {
        Self { begun: Instant::now(), stages: Vec::new(), left: None }
    }

    /// Runs a stage, and says how long it took.
    pub fn stage(&mut self, name: &'static str, run: impl FnOnce() -> Vec<Outcome>) {
        println!("\n== {name} (after {} min)", self.begun.elapsed().as_secs() / 60);
        let begun = Instant::now();
        let outcomes = run();
        let stage = Stage { name, took: begun.elapsed(), outcomes };
        println!("== {stage}");
        self.stages.push(stage);
    }

    /// Says what this run leaves to another.
    pub fn leave(&mut self, what: String) {
        self.left = Some(what);
    }

    /// Whether everything passed or was skipped.
    pub fn success(&self) -> bool {
        !self.outcomes().any(|outcome| outcome.verdict == Verdict::Failed)
    }

    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.stages.iter().flat_map(|stage| &stage.outcomes)
    }
}

/// How many passed, failed and were skipped.
fn counts<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for outcome in outcomes {
        match outcome.verdict {
            Verdict::Passed => passed += 1,
            Verdict::Failed => failed += 1,
            Verdict::Skipped(_) => skipped += 1,
        }
    }
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let counts = counts(self.outcomes.iter());
        write!(f, "{:>8.1} s  {}: {counts}", self.took.as_secs_f64(), self.name)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "\nStages, {} s in all:", self.begun.elapsed().as_secs())?;
        for stage in &self.stages {
            writeln!(f, "{stage}")?;
        }
        // A stage of one program is no test; its time is above.
        let tests = self.stages.iter().filter(|stage| stage.outcomes.len() > 1);
        let mut tests: Vec<&Outcome> = tests.flat_map(|stage| &stage.outcomes).collect();
        tests.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
        list(f, "The slowest tests", tests.into_iter().take(SLOWEST).map(line))?;
        list(f, "Skipped", reasons(self.outcomes()))?;
        list(f, "Not in this run", self.left.iter().map(|what| format!("  {what}")))?;
        let failed = self.outcomes().filter(|outcome| outcome.verdict == Verdict::Failed);
        list(f, "Failed", failed.map(|outcome| format!("  {}", outcome.name)))?;
        writeln!(f, "\n{}", counts(self.outcomes()))
    }
}

/// Lines below a title; nothing where there are none.
fn list(
    f: &mut fmt::Formatter,
    title: &str,
    lines: impl IntoIterator<Item = String>,
) -> fmt::Result {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_some() {
        writeln!(f, "\n{title}:")?;
    }
    lines.try_for_each(|line| writeln!(f, "{line}"))
}

/// Why tests were skipped: each reason once, with the tests.
fn reasons<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for outcome in outcomes {
        if let Verdict::Skipped(reason) = &outcome.verdict {
            reasons.entry(reason).or_default().push(&outcome.name);
        }
    }
    let line = |(reason, names): (&str, Vec<&str>)| {
        let more = match names.len() {
            few if few <= NAMES => String::new(),
            all => format!(" and {} more", all - NAMES),
        };
        let names = &names[..names.len().min(NAMES)];
        format!("  {reason}: {}{more}", names.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, seconds: u64, verdict: Verdict) -> Outcome {
        Outcome { name: name.to_owned(), took: Duration::from_secs(seconds), verdict }
    }

    fn skipped(name: &str, reason: &str) -> Outcome {
        outcome(name, 0, Verdict::Skipped(reason.to_owned()))
    }

    #[test]
    fn failures_of_every_stage_are_named_and_the_counts_stand_alone_at_the_end() {
        let mut report = Report::new();
        report.stage("lints", || vec![outcome("lints", 9, Verdict::Failed)]);
        report.stage("tests", || {
            vec![outcome("a", 1, Verdict::Passed), outcome("b", 2, Verdict::Failed)]
        });
        let text = report.to_string();
        assert!(text.contains("\nFailed:\n  lints\n  b\n"), "{text}");
        assert!(text.contains("tests: 1 passed, 1 failed, 0 skipped\n"), "{text}");
        assert!(text.ends_with("\n\n1 passed, 2 failed, 0 skipped\n"), "{text}");
        assert!(!report.success());
    }

    #[test]
    fn the_ten_slowest_tests_are_listed_but_no_stage_of_one_program() {
        let mut report = Report::new();
        report.stage("lints", || vec![outcome("lints", 99, Verdict::Passed)]);
        let tests = (0..12).map(|i| outcome(&format!("t{i}"), i, Verdict::Passed));
        report.stage("tests", || tests.collect());
        let text = report.to_string();
        let slowest = text.split("The slowest tests:\n").nth(1).unwrap();
        let slowest: Vec<&str> = slowest.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(slowest.len(), 10, "{text}");
        assert!(slowest[0].ends_with("11.0 s  t11") && slowest[9].ends_with("2.0 s  t2"), "{text}");
        assert!(report.success());
    }

    #[test]
    fn a_reason_to_skip_is_said_once() {
        let all = ["a", "b", "c", "d"].map(|name| skipped(name, "needs root"));
        let all = [&all[..], &[skipped("k", "no cluster")]].concat();
        let expected = ["  needs root: a, b, c and 1 more", "  no cluster: k"];
        assert_eq!(reasons(all.iter()), expected);
    }
}
