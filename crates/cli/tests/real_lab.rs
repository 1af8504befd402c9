//! `untax lab` on live servers. It waits for its turn by itself, so these tests do not take one.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

use serde_json::Value;
use std::io::Write;
use std::process::Command;

/// Longer than a run here takes after all other tests had their turn: ends one that hangs.
const HUNG_S: &str = "900";

/// Runs one cause; `None` where the machine cannot do it and need not.
fn lab(arguments: &[&str]) -> Option<(i32, Value)> {
    untax(&[&["lab", "run", "--window", "3s", "--json"], arguments].concat())
}

/// Runs untax; `None` where the machine cannot do it and need not.
fn untax(arguments: &[&str]) -> Option<(i32, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args(["--kill-after=5", HUNG_S, env!("CARGO_BIN_EXE_untax"), "--state-dir"])
        .arg(folder.path())
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let lacking = ["needs root", "is not installed", "is not unpacked", "no control groups"];
    let required = std::env::var_os("UNTAX_REQUIRE_REAL").is_some_and(|value| value == "1");
    if !required && lacking.iter().any(|lacking| said.contains(lacking)) {
        // Not with a macro: the test harness keeps what those print of a passing test.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "\nSKIPPED: {said}\n").unwrap();
        return None;
    }
    let code = output.status.code().expect("not killed by a signal");
    assert!([0, 1].contains(&code), "status {code}: {said}");
    Some((code, serde_json::from_slice(&output.stdout).expect("JSON and nothing else")))
}

fn share(time: &Value, part: &str) -> f64 {
    time[part].as_f64().unwrap_or(0.0) / time["active_s"].as_f64().unwrap()
}

#[test]
fn throttling_is_found_and_its_end_is_measured() {
    // The same as `lab run cpu-throttled`, told as a story without --json.
    let Some((code, run)) = untax(&["demo", "--json"]) else { return };
    assert_eq!((&run["schema"], &run["cause"]), (&"untax.lab/1".into(), &"cpu-throttled".into()));
    assert_eq!(run["engine"], "postgres");
    assert!(share(&run["time"], "runnable_s") > 0.8, "{run:#}");
    assert!(share(&run["time_without"], "throttled_s") < 0.01, "{run:#}");
    assert!(run["measured_gain"]["factor"].as_f64().unwrap() > 1.2, "{run:#}");
    assert_eq!((code, &run["found"], &run["rank"]), (0, &true.into(), &1.into()), "{run:#}");
    assert_eq!(run["found_without"], false, "{run:#}");
}

#[test]
#[ignore = "long: two to six runs of the lab"]
fn where_nothing_was_done_nothing_is_found() {
    for cause in ["none", "none-idle"] {
        // What a busy machine does to one run, it hardly does to the next.
        let mut always: Option<Vec<String>> = None;
        for _ in 0..3 {
            let Some((_, run)) = lab(&[cause, "--engine", "postgres", "--pairs", "1"]) else {
                return;
            };
            // What else runs on the machine of a test, or on the machine below it, is not the
            // lab's.
            let findings = run["findings"].as_array().unwrap().iter();
            let rules = findings.map(|finding| finding["rule"].as_str().unwrap().to_owned());
            let found =
                rules.filter(|rule| !["cpu-contended", "vm-steal"].contains(&rule.as_str()));
            let before = always.take().unwrap_or_else(|| found.clone().collect());
            let both: Vec<String> = found.filter(|rule| before.contains(rule)).collect();
            if both.is_empty() {
                always = None;
                break;
            }
            always = Some(both);
        }
        assert_eq!(always, None, "{cause}");
    }
}

#[test]
#[ignore = "long: two runs of the lab on each of five servers"]
fn servers_of_other_versions_suffer_from_a_limit_and_are_healthy_without() {
    for engine in ["postgres17", "postgres18", "mysql9", "mariadb11", "valkey"] {
        let throttled = lab(&["cpu-throttled", "--engine", engine, "--pairs", "2"]);
        let Some((_, run)) = throttled else { return };
        assert_eq!(run["engine"], engine);
        assert!(run["measured_gain"]["factor"].as_f64().unwrap() > 1.2, "{run:#}");
        assert!(share(&run["time"], "unaccounted_s") < 0.05, "{run:#}");
        assert_eq!(
            (&run["found"], &run["found_without"]),
            (&true.into(), &false.into()),
            "{run:#}"
        );
        let Some((_, run)) = lab(&["none", "--engine", engine]) else { return };
        let findings = run["findings"].as_array().unwrap().iter();
        let worse = findings.filter(|finding| finding["severity"] != "info");
        // What else runs on the machine of a test, or on the machine below it, is not the lab's.
        let rules = worse.map(|finding| finding["rule"].as_str().unwrap());
        let own: Vec<&str> =
            rules.filter(|rule| !["cpu-contended", "vm-steal"].contains(rule)).collect();
        assert!(own.is_empty(), "{engine}: {own:?}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let untax = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_untax")).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), said)
    };
    let (code, said) = untax(&["lab", "run", "no-such-cause"]);
    assert!(code == 3 && said.contains("cpu-throttled"), "{code} {said}");
    let (code, said) = untax(&["lab", "run", "oom-near", "--engine", "postgres"]);
    assert!(
        code == 3 && said.contains("has a fixed size") && said.contains("try redis"),
        "{code} {said}"
    );
}
