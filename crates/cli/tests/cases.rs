//! Captured hosts: each folder or archive in tests/cases is replayed and compared with the result
//! that stands beside it, and so is the plan for it. Dropping a capture in adds a test;
//! `UNTAX_BLESS=1` writes its result and its plan, for a person to read and commit.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn captured_hosts_are_diagnosed_as_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let cases = captures(&folder);
    assert!(!cases.is_empty(), "no capture in {}", folder.display());
    let failed: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn captured_hosts_are_planned_for_as_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let cases = captures(&folder);
    assert!(!cases.is_empty(), "no capture in {}", folder.display());
    let failed: Vec<String> = cases.iter().filter_map(|case| plan(case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// The plan as people read it, with the text of the files to hand over.
fn plan(case: &Path) -> Result<(), String> {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_untax"))
        .args(["plan", "--include-info", "--json", "--from"])
        .arg(case)
        .arg("--state-dir")
        .arg(state.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let plan: untax_core::Plan = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{}: no plan ({error}): {errors}", case.display()))?;
    let mut found = untax_report::terminal::plan(&plan, untax_report::terminal::Style::default());
    for (name, text) in plan.tasks.iter().filter_map(|task| task.file.as_ref()) {
        found += &format!("\n[{name}]\n{text}");
    }
    compared(case, "plan.txt", &found)
}

/// An id of evidence or of a reason that is on no list, or has another unit there.
fn unlisted(result: &serde_json::Value) -> Option<String> {
    let mut places = result["databases"].as_array().unwrap().clone();
    places.push(result.clone());
    let all = |within: &serde_json::Value, of: &str| within[of].as_array().unwrap().clone();
    let findings: Vec<_> = places.iter().flat_map(|place| all(place, "findings")).collect();
    let mut evidence = findings.iter().flat_map(|finding| all(finding, "evidence"));
    let mut unmeasured = places.iter().flat_map(|place| all(place, "unmeasured"));
    let unlisted = evidence.find(|evidence| {
        let (id, unit) = (evidence["id"].as_str(), evidence["unit"].as_str());
        !untax_rules::EVIDENCE.iter().any(|kind| (Some(kind.id), Some(kind.unit)) == (id, unit))
    });
    let unlisted = unlisted.or_else(|| {
        unmeasured.find(|gap| {
            !untax_core::reason::REASONS.iter().any(|reason| Some(reason.id) == gap["id"].as_str())
        })
    });
    unlisted.map(|unlisted| unlisted["id"].to_string())
}

#[expect(clippy::disallowed_methods, reason = "lists the project's own files")]
fn captures(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_dir() || path.to_string_lossy().ends_with(".tar.gz"));
    paths.sort();
    paths
}

fn check(case: &Path) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_untax"))
        .args(["check", "--json", "--replay"])
        .arg(case)
        .output()
        .unwrap();
    let name = case.display();
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut result: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{name}: no JSON ({error}): {errors}"))?;
    result["run"] = "".into();
    unlisted(&result).map_or(Ok(()), |id| Err(format!("{name}: {id} is not listed")))?;
    let mut found = serde_json::to_string_pretty(&result).unwrap();
    found.push('\n');
    compared(case, "expected.json", &found)
}

/// Compares a result with the file of this name beside a case, or writes it.
#[expect(clippy::disallowed_methods, reason = "reads the project's own files and its one switch")]
fn compared(case: &Path, extension: &str, found: &str) -> Result<(), String> {
    let stem = case.to_string_lossy().trim_end_matches(".tar.gz").to_owned();
    let expected = PathBuf::from(format!("{stem}.{extension}"));
    if std::env::var("UNTAX_BLESS").is_ok() {
        std::fs::write(&expected, found).unwrap();
        return Ok(());
    }
    let wanted = std::fs::read_to_string(&expected).unwrap_or_default();
    if found == wanted {
        return Ok(());
    }
    let differs = found.lines().zip(wanted.lines()).find(|(a, b)| a != b);
    Err(format!("{} differs from {}: {differs:?}", case.display(), expected.display()))
}
