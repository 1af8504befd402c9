//! What a run is judged by, and what a matrix counts.

use super::*;
use crate::Interval;
use serde_json::{Value, json};

fn tax(share: f64) -> Tax {
    Tax::new(Interval::exact(share), "")
}

fn finding(rule: &str, share: Option<f64>) -> Finding {
    Finding { tax: share.map(tax), ..Finding::new(rule, Severity::Medium, "", "") }
}

#[test]
fn the_floor_is_of_trials_that_follow_each_other() {
    let of = |with: &[f64], without: &[f64], with_first: &[bool]| {
        let (with_per_s, without_per_s) = (with.to_vec(), without.to_vec());
        let with_first = with_first.to_vec();
        followers(&LabRun { with_per_s, without_per_s, with_first, ..run("disk-slow", "mysql") })
    };
    let (with, without) = (&[1.0, 2.0, 8.0], &[3.0, 6.0, 5.0]);
    assert_eq!(of(with, without, &[]), [0.5, 0.25]);
    assert!(of(&[1.0], &[2.0], &[]).is_empty());
    assert_eq!(of(with, without, &[true, false, true]), [0.5, 0.25]);
    // BAAB, then ABBA: the second pair ends without the cause, and the third begins with it.
    assert_eq!(of(with, without, &[false, true, true]), [0.5]);
}

#[test]
fn who_does_not_name_a_cause_predicts_nothing_of_it() {
    let gain = |factor: f64| Gain { factor, low: factor - 0.25, high: factor + 0.5 };
    let each = predictions(vec![Some(gain(2.0)), Some(Gain::NONE), None, Some(gain(1.5))]);
    assert_eq!(each.iter().map(|gain| gain.factor).collect::<Vec<_>>(), [2.0, 1.0, 1.5]);
    assert_eq!(median(&each), Some(Gain { factor: 1.5, low: 1.25, high: 2.0 }));
    assert_eq!(median(&predictions(vec![Some(Gain::NONE), None])), None);
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

/// A run of a cause that was found, and was not found without it.
fn run(cause: &str, engine: &str) -> LabRun {
    let shares = [
        "active_s",
        "on_cpu_s",
        "runnable_s",
        "throttled_s",
        "disk_s",
        "reclaim_s",
        "lock_s",
        "network_s",
        "idle_s",
        "unaccounted_s",
    ];
    let time: Value = shares.into_iter().map(|name| (name, json!(0.0))).collect();
    let run = json!({
        "schema": SCHEMA,
        "run": "lab-1",
        "taken_at": "2026-01-01T00:00:00Z",
        "cause": cause,
        "engine": engine,
        "dose": "strong",
        "window_s": 5.0,
        "found": true,
        "found_without": false,
        "with_per_s": [],
        "without_per_s": [],
        "time": time,
        "time_without": time,
        "findings": [],
        "findings_without": [],
    });
    serde_json::from_value(run).unwrap()
}

#[test]
fn what_is_said_without_a_cause_tells_nothing_of_it() {
    let info = |share| Finding { severity: Severity::Info, ..finding("a", share) };
    assert!(!tells(None, None) && !tells(None, Some(&finding("a", Some(0.5)))));
    assert!(tells(Some(&info(None)), None), "not there without it: that is enough");
    assert!(!tells(Some(&info(None)), Some(&info(None))));
    assert!(!tells(Some(&info(Some(0.01))), Some(&info(Some(0.01)))));
    assert!(tells(Some(&info(Some(0.1))), Some(&info(Some(0.01)))));
    assert!(tells(Some(&finding("a", None)), Some(&info(None))));
}

#[test]
fn a_rule_that_always_says_the_same_does_not_pass() {
    let judged = |with: Option<f64>, without: Option<f64>| {
        let (tax, tax_without) = (with.map(tax), without.map(tax));
        LabRun { found_without: true, tax, tax_without, ..run("disk-slow", "mysql") }.as_expected()
    };
    assert!(judged(Some(0.9), Some(0.2)) && judged(Some(0.9), None), "a part of it is left");
    assert!(!judged(Some(0.9), Some(0.9)) && !judged(Some(0.9), Some(0.89)));
    assert!(!judged(None, None) && !judged(None, Some(0.1)));
    assert!(run("oom-near", "redis").as_expected(), "what takes no time has no tax");
    assert!(!LabRun { found: false, ..run("oom-near", "redis") }.as_expected());
    assert!(!run("none", "redis").as_expected());
    assert!(LabRun { found: false, ..run("none-idle", "redis") }.as_expected());
}

#[test]
fn a_run_that_failed_counts_as_one() {
    let mut matrix = LabMatrix {
        schema: MATRIX_SCHEMA.to_owned(),
        run: "lab-matrix-1".to_owned(),
        taken_at: Timestamp::UNIX_EPOCH,
        cpu_model: String::new(),
        kernel_release: String::new(),
        seed: 1,
        complete: true,
        runs: vec![run("io-hang", "mysql")],
        failed: Vec::new(),
        skipped: Vec::new(),
    };
    matrix.fail("io-hang", "mysql", "killed".to_owned());
    matrix.fail("io-hang", "mysql", "killed again".to_owned());
    matrix.fail("disk-slow", "redis", "no load".to_owned());
    assert_eq!(matrix.failed.iter().map(|failed| failed.repeat).collect::<Vec<_>>(), [2, 3, 1]);
    assert_eq!((matrix.as_expected(), matrix.tries()), (1, 4));
    let cells = matrix.cells();
    let counts = cells.iter().map(|cell| (cell.cause, cell.as_expected(), cell.tries()));
    assert_eq!(counts.collect::<Vec<_>>(), [("disk-slow", 0, 1), ("io-hang", 1, 3)]);
    // Those of earlier versions held none.
    let mut saved = serde_json::to_value(&matrix).unwrap();
    saved.as_object_mut().unwrap().remove("failed");
    let earlier: LabMatrix = serde_json::from_value(saved).unwrap();
    assert_eq!((earlier.runs.len(), earlier.tries()), (1, 1));
}

#[test]
fn what_is_left_of_a_tax_is_told_of_all_runs() {
    let left = |share| LabRun {
        found_without: true,
        tax: Some(tax(0.9)),
        tax_without: Some(tax(share)),
        ..run("disk-slow", "mysql")
    };
    let runs = [left(0.125), left(0.25), run("disk-slow", "mysql")];
    let (cause, engine) = runs[0].key();
    let cell = LabCell { cause, engine, runs: runs.iter().collect(), failed: 0 };
    assert_eq!((cell.found_without(), cell.tax_without()), (2, Some(0.1875)));
}
