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
