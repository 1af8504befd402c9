//! Files of each release are read, and its receipts undone; those of a newer format are refused.
//!
//! `tests/formats/0.1` was written by 0.1.0. A release adds a folder and changes none.

#![expect(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Stands in receipts for the directory of the files that were changed.
const ROOT: &str = "/srv/formats";

/// What the changed file held before.
const BEFORE: &str = "max_connections = 100\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/0.1")
}

fn untax(state: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
    command.arg("--state-dir").arg(state).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The files of a kind.
fn files(kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join(kind)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no {kind}");
    files
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

#[test]
fn runs_of_0_1_are_replayed_planned_for_and_drawn() {
    let state = tempfile::tempdir().unwrap();
    for run in files("runs") {
        let page = state.path().join("page.html");
        let (run, page) = (run.to_str().unwrap(), page.to_str().unwrap());
        let drawn = untax(state.path(), &["report", run, "-o", page]);
        assert_eq!(drawn.status.code(), Some(0), "{run}: {}", said(&drawn));
    }
    let run = folder().join("runs/check.json");
    let saved: Value = serde_json::from_str(&fs::read_to_string(&run).unwrap()).unwrap();
    let replayed = untax(state.path(), &["check", "--replay", run.to_str().unwrap(), "--json"]);
    let replayed = json(&replayed);
    let rules = |check: &Value| -> Vec<String> {
        let findings = check["databases"][0]["findings"].as_array().unwrap();
        findings.iter().map(|one| one["rule"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!rules(&saved["check"]).is_empty());
    assert_eq!(rules(&replayed), rules(&saved["check"]), "the same window, the same findings");
    let planned = untax(state.path(), &["plan", "--from", run.to_str().unwrap(), "--json"]);
    assert_eq!(json(&planned)["schema"], "untax.plan/1");
}

#[test]
fn recordings_of_0_1_are_explained() {
    let state = tempfile::tempdir().unwrap();
    for recording in files("recordings") {
        let recording = recording.to_str().unwrap();
        let told = json(&untax(state.path(), &["timeline", recording, "--json"]));
        assert_eq!(told["windows"], 180, "{recording}");
        let changes = told["databases"][0]["changes"].as_array().unwrap();
        assert_eq!(changes.len(), 1, "{recording}");
        assert_eq!(changes[0]["causes"][0]["id"], "read-latency", "{recording}");
        let newer = state.path().join("newer");
        let text = fs::read(recording).unwrap();
        let place = text.iter().position(|byte| *byte == b'1').unwrap();
        fs::write(&newer, [&text[..place], b"2", &text[place + 1..]].concat()).unwrap();
        let refused = untax(state.path(), &["timeline", newer.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(said(&refused).contains("its format is untax.recording/2"), "{}", said(&refused));
    }
}

#[test]
fn plans_of_0_1_are_read() {
    let state = tempfile::tempdir().unwrap();
    for plan in files("plans") {
        // Its database is not here, and that is all that is wrong with it.
        let tried = untax(state.path(), &["apply", plan.to_str().unwrap(), "--dry-run"]);
        let words = said(&tried);
        assert_eq!(tried.status.code(), Some(2), "{}: {words}", plan.display());
        assert!(words.contains("this host is not as it was when check-"), "{words}");
    }
}

/// A state directory with the receipts of 0.1, and the files that they are about as they were left.
fn left() -> (tempfile::TempDir, PathBuf) {
    let work = tempfile::tempdir().unwrap();
    let (state, root) = (work.path().join("state"), work.path().join("srv"));
    fs::create_dir_all(state.join("receipts")).unwrap();
    fs::create_dir_all(&root).unwrap();
    for receipt in files("receipts") {
        let text = fs::read_to_string(&receipt).unwrap().replace(ROOT, root.to_str().unwrap());
        fs::write(state.join("receipts").join(receipt.file_name().unwrap()), text).unwrap();
    }
    fs::write(root.join("applied.conf"), "max_connections = 200\n").unwrap();
    fs::write(root.join("interrupted.conf"), "max_connections = 200\n").unwrap();
    (work, root)
}

#[test]
fn receipts_of_0_1_are_undone() {
    let (work, root) = left();
    let state = work.path().join("state");
    let put_back = untax(&state, &["undo", "--stale"]);
    assert_eq!(put_back.status.code(), Some(0), "{}", said(&put_back));
    let text = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    assert_eq!(text("interrupted.conf"), BEFORE);
    assert_eq!(text("applied.conf"), "max_connections = 200\n", "it was not interrupted");
    let undone = untax(&state, &["undo", "receipt-20261129T215501000Z"]);
    assert_eq!(undone.status.code(), Some(0), "{}", said(&undone));
    assert_eq!(text("applied.conf"), BEFORE);
}

#[test]
fn files_of_a_newer_format_are_refused_and_left_alone() {
    let (work, root) = left();
    let state = work.path().join("state");
    let newer = |text: &str| text.replacen("/1\"", "/2\"", 1);
    let refused = |arguments: &[&str], format: &str| {
        let output = untax(&state, arguments);
        let words = said(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {words}");
        assert!(words.contains(format), "{arguments:?}: {words}");
        assert!(words.contains("use the version that wrote it"), "{arguments:?}: {words}");
    };
    let file = work.path().join("newer.json");
    let path = file.to_str().unwrap();
    fs::write(&file, newer(&fs::read_to_string(folder().join("runs/check.json")).unwrap()))
        .unwrap();
    refused(&["check", "--replay", path], "untax.check/2");
    refused(&["plan", "--from", path], "untax.check/2");
    refused(&["report", path, "-o", "page.html"], "untax.check/2");
    fs::write(&file, newer(&fs::read_to_string(&files("plans")[0]).unwrap())).unwrap();
    refused(&["apply", path], "untax.plan/2");
    for receipt in fs::read_dir(state.join("receipts")).unwrap() {
        let receipt = receipt.unwrap().path();
        fs::write(&receipt, newer(&fs::read_to_string(&receipt).unwrap())).unwrap();
    }
    refused(&["undo", "--stale"], "untax.receipt/2");
    let kept = fs::read_to_string(root.join("interrupted.conf")).unwrap();
    assert_eq!(kept, "max_connections = 200\n", "nothing of it was undone");
}
