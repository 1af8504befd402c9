//! Commands that need neither a database nor privilege.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

use std::fs;
use std::process::{Command, Output};

fn untax(arguments: &[&str], state: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
    command.arg("--state-dir").arg(state).args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn each_shell_has_completions_of_each_command() {
    let state = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&untax(&["completions", shell], state.path()));
        assert!(script.contains("verify") && script.contains("runs"), "{shell}");
    }
    assert_eq!(untax(&["completions", "csh"], state.path()).status.code(), Some(3));
}

#[test]
fn each_command_has_a_manual_page() {
    let state = tempfile::tempdir().unwrap();
    assert!(out(&untax(&["man"], state.path())).contains(".TH untax 1"));
    let pages = state.path().join("man1");
    assert!(untax(&["man", "-o", pages.to_str().unwrap()], state.path()).status.success());
    for page in ["untax.1", "untax-check.1", "untax-bench-pages.1"] {
        assert!(fs::read_to_string(pages.join(page)).unwrap().contains(".TH"), "{page}");
    }
}

#[test]
fn saved_runs_are_listed_and_named_in_short() {
    let state = tempfile::tempdir().unwrap();
    let none = untax(&["plan"], state.path());
    assert_eq!(none.status.code(), Some(2));
    let why = String::from_utf8(none.stderr).unwrap();
    assert!(why.contains("no check is saved") && why.contains("untax check"), "{why}");
    let runs = state.path().join("runs");
    fs::create_dir_all(&runs).unwrap();
    for id in ["check-20260101T101500000Z", "verify-20260101T111500000Z"] {
        fs::write(runs.join(format!("{id}.json")), r#"{"verdict":"proven"}"#).unwrap();
    }
    let listed = out(&untax(&["runs"], state.path()));
    let [last, first] = ["verify-2026", "check-2026"].map(|id| listed.find(id).unwrap());
    assert!(last < first, "the latest first: {listed}");
    for name in ["@last", "verify"] {
        assert!(out(&untax(&["runs", name], state.path())).contains("proven"), "{name}");
    }
    let unknown = untax(&["runs", "@-7"], state.path());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("only 2 are saved"));
}

#[test]
fn the_doctor_says_of_each_need_whether_it_is_there() {
    let state = tempfile::tempdir().unwrap();
    let output = untax(&["doctor", "--json"], state.path());
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["schema"], "untax.doctor/1");
    let needs = seen["needs"].as_array().unwrap();
    let lacks = needs.iter().any(|need| need["state"].is_object());
    assert_eq!(output.status.code(), Some(i32::from(lacks)), "{seen}");
    let text = out(&untax(&["doctor"], state.path()));
    assert!(needs.iter().all(|need| text.contains(need["id"].as_str().unwrap())), "{text}");
}

#[test]
fn a_printed_check_whose_run_is_gone_says_so() {
    let state = tempfile::tempdir().unwrap();
    let printed = state.path().join("printed.json");
    fs::write(&printed, r#"{"schema":"untax.check/1","run":"check-20260101T101500000Z"}"#).unwrap();
    let output = untax(&["plan", "--from", printed.to_str().unwrap()], state.path());
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(why.contains("its run is no longer saved here"), "{why}");
}

/// A result of `untax bench runtime` on the host of a capture: Redis takes 8 times as long in a sandbox.
fn measured_in_runtimes(cpu_model: &str, kernel_release: &str) -> serde_json::Value {
    let arm = |id: &str, value: f64| {
        let trials: Vec<serde_json::Value> = (0..8)
            .map(|block| serde_json::json!({"block": block, "value": value + f64::from(block) / 100.0}))
            .collect();
        serde_json::json!({"arm": id, "state": "measured", "value": null, "extras": [], "ratio": null,
            "trials": trials})
    };
    let about = |id: &str, own_kernel: bool| serde_json::json!({"id": id, "summary": id, "isolation": id, "separates_kernel": own_kernel});
    serde_json::json!({
        "schema": "untax.bench.runtime/1", "run": "bench-runtime-1", "taken_at": "2026-01-01T00:00:00Z",
        "cpu_model": cpu_model, "kernel_release": kernel_release, "idle": "", "seed": 1, "budget_s": 1.0,
        "spent_s": 1.0, "baseline": "host",
        "arms": [about("host", false), about("a-sandbox", true)],
        "cells": [{"workload": "redis-get", "summary": "", "unit": "requests/s", "better": "higher",
            "stands_for": {"engine": "redis", "connects": false}, "placement": "one-cpu",
            "cpus": {"server": [0], "client": [0]}, "state": "measured", "blocks": 8,
            "arms": [arm("host", 80.0), arm("a-sandbox", 10.0)],
            "noise": {"ratios": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "floor": 0.01}}],
        "aa": {"differ": 0, "cells": 0}, "complete": true,
    })
}

#[test]
fn advice_prices_a_captured_database_by_what_was_measured_on_its_own_host() {
    let state = tempfile::tempdir().unwrap();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/redis-thp-always.tar.gz");
    let ask = || untax(&["advise", "runtime", "--check", case, "--json"], state.path());
    let read = |output: &Output| -> serde_json::Value {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let none = read(&ask());
    assert_eq!((&none["schema"], &none["layer"]), (&"untax.advise/1".into(), &"runtime".into()));
    assert!(none["not_measured"].as_str().unwrap().contains("run untax bench runtime"), "{none}");
    let check =
        read(&untax(&["check", "--replay", case, "--json", "--fail-on", "high"], state.path()));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let host = [&check["host"]["cpu"]["model"], &check["host"]["kernel"]["release"]].map(text);
    let runs = state.path().join("runs");
    fs::create_dir_all(&runs).unwrap();
    let keep = |run: &str, kernel: &str| {
        let result = measured_in_runtimes(&host[0], kernel).to_string();
        fs::write(runs.join(format!("bench-runtime-{run}.json")), result).unwrap();
    };
    keep("20260101T101500000Z", "another kernel");
    let elsewhere = read(&ask());
    assert!(
        text(&elsewhere["not_measured"]).contains("another processor or kernel"),
        "{elsewhere}"
    );
    keep("20260101T111500000Z", &host[1]);
    let advice = read(&ask());
    let sandbox = &advice["databases"][0]["choices"][0];
    assert_eq!((&sandbox["id"], &sandbox["separates_kernel"]), (&"a-sandbox".into(), &true.into()));
    let price = &sandbox["price"];
    assert!((price["factor"]["median"].as_f64().unwrap() - 8.0).abs() < 0.1, "{price}");
    assert_eq!((&price["method"], &price["verdict"]), (&"measured".into(), &"slower".into()));
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = flat(out(&untax(&["advise", "runtime", "--check", case], state.path())));
    assert!(shown.contains("A kernel of its own would cost this Redis: a-sandbox"), "{shown}");
    let plan = flat(out(&untax(&["plan", "--from", case], state.path())));
    assert!(plan.contains("Another runtime") && plan.contains("a-sandbox"), "{plan}");
}
