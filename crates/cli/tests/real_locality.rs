//! `untax bench locality` on this very machine: changes that are made on purpose, and their recording.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, Untax, real};

/// Mounts, directories and control groups of the bench.
fn left() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let lines = mounts.lines().filter(|line| line.contains("/untax-bench.")).map(str::to_owned);
    let groups = mounts.lines().filter(|line| line.contains(" cgroup"));
    let groups = groups.map(|line| line.split(' ').nth(1).unwrap().to_owned());
    let folders = groups.chain([std::env::temp_dir().display().to_string()]);
    let entries = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let paths = entries.map(|entry| entry.path().display().to_string());
    let ours = |path: &String| {
        ["/untax-bench.", "/untax-lab."].iter().any(|name| path.contains(name))
            || path.contains("/untax-lab-") && path.ends_with("-server")
    };
    lines.chain(paths.filter(ours)).collect()
}

fn step<'a>(bench: &'a Value, id: &str) -> &'a Value {
    let steps = bench["steps"].as_array().unwrap();
    steps.iter().find(|step| step["id"] == id).unwrap_or_else(|| panic!("no {id} in {bench:#}"))
}

/// What is true of every complete result, however busy the machine is.
fn assert_whole(bench: &Value) {
    assert_eq!(
        (&bench["schema"], &bench["complete"]),
        (&"untax.bench.locality/1".into(), &true.into())
    );
    assert_eq!(bench["steps"].as_array().unwrap().len(), 4, "{bench:#}");
    // By clients, whatever the timeline says: each limit was one.
    for id in ["cpu-limit", "tablespace-1", "tablespace-2"] {
        let client = &step(bench, id)["client"];
        let [before, after] =
            ["before_per_s", "after_per_s"].map(|key| client[key].as_f64().unwrap());
        assert!(after > before, "{id}: {client:#}");
    }
    let timeline = &bench["timeline"];
    assert_eq!(timeline["databases"].as_array().unwrap().len(), 1, "{timeline:#}");
    assert!(timeline["databases"][0]["name"].as_str().unwrap().starts_with("postgres@"));
}

#[test]
#[ignore = "long: four changes of a real server in two minutes"]
fn changes_made_on_purpose_stand_beside_what_the_timeline_says() {
    real(|| {
        let untax = Untax::new();
        let page = untax.path("page.html");
        let page = page.to_str().unwrap();
        let ran =
            untax.run(&["bench", "locality", "--quick", "--beside", "--json", "--html", page]);
        let bench = ran.json();
        assert_whole(&bench);
        let text = fs::read_to_string(page).unwrap();
        assert!(text.contains("What was done, and what the timeline says"));
        // The recording is one like any other.
        let recording = bench["recording"].as_str().unwrap();
        let again = untax.run(&["timeline", recording, "--json"]).json();
        assert_eq!(again["windows"], bench["timeline"]["windows"]);
        assert_eq!(left(), Vec::<String>::new());
        Ok(())
    });
}

/// Starts the bench, and interrupts it once it records.
fn interrupted(untax: &Untax) -> Ran {
    let errors = fs::File::create(untax.path("errors")).unwrap();
    let mut command = untax.command(&["bench", "locality", "--quick", "--beside"]);
    let child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
    let recording = untax.path("state/bench-locality.untax");
    let begun = Instant::now();
    while !Path::new(&recording).exists() && begun.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(200));
    }
    // Some windows.
    std::thread::sleep(Duration::from_secs(8));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let mut ran = Ran::from(&child.wait_with_output().unwrap());
    ran.stderr = fs::read_to_string(untax.path("errors")).unwrap();
    ran
}

#[test]
#[ignore = "long: a server and two disks are made, 40 s"]
fn one_that_is_interrupted_gives_what_it_has_and_leaves_nothing() {
    real(|| {
        let untax = Untax::new();
        let ran = interrupted(&untax);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("interrupted"), "{}", ran.stderr);
        assert!(
            ran.stdout.contains("Interrupted: the steps made so far are shown."),
            "{}",
            ran.stdout
        );
        assert_eq!(left(), Vec::<String>::new());
        let shown =
            untax.run(&["report", "@last", "-o", untax.path("page.html").to_str().unwrap()]);
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        Ok(())
    });
}

#[test]
fn what_cannot_work_is_refused_with_the_next_action() {
    let refused = |untax: &Untax, more: &[&str], code: i32, why: &str| {
        let ran = untax.run(&[&["bench", "locality"], more].concat());
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
    };
    refused(&Untax::new(), &["--budget", "30s"], 3, "2m to 24h");
    refused(&Untax::new(), &["--fail-if", "all > 3"], 3, "'named < 4' and 'others > 0' are");
    if rustix::process::geteuid().is_root() {
        refused(&Untax::as_nobody(), &["--quick"], 2, "needs root; run it with sudo");
    }
}
