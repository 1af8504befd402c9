//! What somebody meets who types the first commands: on captured hosts, so that no database is needed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::{Command, Output};

/// A capture of the project's own.
fn case(name: &str) -> String {
    format!("{}/../../tests/cases/{name}.tar.gz", env!("CARGO_MANIFEST_DIR"))
}

/// What a command gives in this environment.
fn untax(words: &[&str], environment: &[(&str, &str)], state: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
    command.args(words).arg("--state-dir").arg(state);
    for name in ["LC_ALL", "LC_CTYPE", "LANG", "COLUMNS"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn columns_and_the_locale_are_heeded() {
    let state = tempfile::tempdir().unwrap();
    let case = case("postgres-small-pages");
    let words = ["check", "--replay", &case];
    let screen = text(&untax(&words, &[("COLUMNS", "60")], state.path()).stdout);
    assert!(screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
    assert!(screen.contains('·'), "{screen}");
    let plain = text(&untax(&words, &[("LC_ALL", "C")], state.path()).stdout);
    assert!(plain.is_ascii() && plain.lines().any(|line| line.chars().count() > 60), "{plain}");
    let utf8 = text(&untax(&words, &[("LC_ALL", "C.UTF-8")], state.path()).stdout);
    assert!(utf8.contains('·'), "{utf8}");
}

#[test]
fn a_word_that_is_not_known_is_answered_by_the_nearest() {
    let state = tempfile::tempdir().unwrap();
    for (words, meant) in [
        (&["explain", "smal-pages"][..], "did you mean small-pages?"),
        (&["chek"], "'check'"),
        (&["lab", "run", "disc-slow"], "did you mean disk-slow?"),
    ] {
        let output = untax(words, &[], state.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(meant), "{said}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_said_before_the_window() {
    let state = tempfile::tempdir().unwrap();
    let nowhere = state.path().join("no/such/folder/tax.html");
    // A window of a day: whoever waited for it would not come back.
    let words = ["check", "--window", "24h", "--html", nowhere.to_str().unwrap()];
    let output = untax(&words, &[], state.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot write"), "{}", text(&output.stderr));
}

#[test]
fn a_check_can_be_pasted_as_markdown() {
    let state = tempfile::tempdir().unwrap();
    let case = case("postgres-small-pages");
    let words = ["check", "--replay", &case, "--format", "markdown"];
    let page = text(&untax(&words, &[], state.path()).stdout);
    assert!(page.starts_with("# ") && page.contains("| severity | cause |"), "{page}");
    assert!(page.contains("`small-pages`"), "{page}");
}

#[test]
fn a_plan_acts_on_what_matters() {
    let state = tempfile::tempdir().unwrap();
    let case = case("pool-idle");
    let of = |words: &[&str]| {
        let output = untax(&[&["plan", "--from", &case], words].concat(), &[], state.path());
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (plan, beside) = of(&[]);
    assert!(beside.contains("--include-info plans for them"), "{plan}\n{beside}");
    let (all, beside) = of(&["--include-info"]);
    assert!(!beside.contains("left out"), "{beside}");
    assert_ne!(plan, all);
    assert!(all.contains("For a change review"), "{all}");
}
