//! Exit codes and messages of `untax check` when it is asked for what it cannot do.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use std::fs;
use support::Untax;

#[test]
fn bad_usage_is_status_three_and_names_the_flag() {
    let untax = Untax::new();
    let cases: [(&[&str], &str); 11] = [
        (&["check", "--no-such-flag"], "--no-such-flag"),
        (&["check", "--window", "soon"], "--window"),
        (&["check", "--pid", "postgres"], "--pid"),
        (&["check", "--pid", "1", "--all"], "--all"),
        (&["check", "--pod", "no-namespace"], "--pod"),
        (&["chekc"], "chekc"),
        (&["capture"], "FILE"),
        // Standard output of the test is a pipe.
        (&["watch"], "untax check"),
        (&["watch", "--window", "0s"], "--window"),
        (&["watch", "--count", "3"], "--json"),
        (&["watch", "--json", "--count", "0"], "--count"),
    ];
    for (arguments, named) in cases {
        let ran = untax.run(arguments);
        assert_eq!(ran.code, 3, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(named), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
}

#[test]
fn what_cannot_be_replayed_is_status_two_and_says_what_it_is_not() {
    let untax = Untax::new();
    fs::write(untax.path("garbage.json"), "{\"schema\": 7").unwrap();
    fs::write(untax.path("other.json"), "{\"schema\": \"untax.check/1\"}").unwrap();
    fs::write(untax.path("garbage.tar.gz"), b"\x1f\x8b\x08garbage").unwrap();
    fs::write(untax.path("empty.tar.gz"), "").unwrap();
    fs::create_dir(untax.path("folder")).unwrap();
    let names =
        ["garbage.json", "other.json", "garbage.tar.gz", "empty.tar.gz", "folder", "not-there"];
    for name in names {
        let ran = untax.run(&["check", "--replay", name, "--json"]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(name), "{name}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{name}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{name}");
    }
}

#[test]
fn saved_results_become_one_page_and_others_are_refused() {
    let untax = Untax::new();
    let saved = |name: &str| format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let check = saved("tests/cases/postgres-small-pages.expected.json");
    let bench = saved("docs/results/pages-100m.json");
    let ran = untax.run(&["report", &check, &bench, "-o", "page.html"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let told = untax.run(&["report", &check, &bench, "-o", "page.html", "--json"]).json();
    assert_eq!((&told["path"], &told["results"]), (&"page.html".into(), &2.into()));
    let page = fs::read_to_string(untax.path("page.html")).unwrap();
    assert!(page.contains("untax check") && page.contains("untax bench pages"));

    let other = saved("docs/results/prediction.json");
    let ran = untax.run(&["report", &check, &other, "-o", "other.html"]);
    assert!(ran.code == 2 && ran.stderr.contains("no result of untax"), "{}", ran.stderr);
    assert!(!untax.path("other.html").exists());
    let ran = untax.run(&["verify", "plan", "--workload-applied", "true"]);
    assert!(ran.code == 3 && ran.stderr.contains("--workload"), "{}", ran.stderr);
}

#[test]
fn a_process_that_is_not_there_is_status_two() {
    // The largest pid that Linux has is 2^22.
    let ran = Untax::new().run(&["check", "--pid", "4194305", "--window", "0s", "--json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("4194305"), "{}", ran.stderr);
}

#[test]
fn a_capture_is_never_written_over_something() {
    let untax = Untax::new();
    fs::write(untax.path("mine.tar.gz"), "mine").unwrap();
    let ran = untax.run(&["capture", "mine.tar.gz", "--window", "0s"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("mine.tar.gz"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(untax.path("mine.tar.gz")).unwrap(), "mine");
}
