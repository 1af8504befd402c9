//! SIGKILL to `untax verify`: its guard leaves the host as it was.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::limited::Limited;
use support::{Untax, apply, text, texts};
use untax_scenes::{Postgres, Redis, Runtime};

/// Ends a wait that nothing would; measures nothing.
const HUNG: Duration = Duration::from_secs(120);

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < HUNG, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills the program that a command with a time limit was started for, not its guard.
fn kill(mut verification: Child) {
    let timeout = verification.id();
    let children = text(&format!("/proc/{timeout}/task/{timeout}/children"));
    let pid: i32 = children.trim().parse().expect("one child");
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(!verification.wait().unwrap().success());
}

fn start(untax: &Untax, words: &[&str]) -> Child {
    untax.command(words).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_plan_that_was_tried_when_untax_was_killed_is_undone_or_applied_again() {
    support::real(|| {
        let server = Limited::start(0.3)?;
        let before = server.limit();
        let untax = Untax::new();
        let (id, _) = server.planned(&untax)?;
        // Restarts leave their mark: a server whose setting is put back needs one.
        let restarts = untax.path("restarts");
        let restart = format!("echo >>{}", restarts.display());
        let count = || std::fs::read_to_string(&restarts).map_or(0, |text| text.len());
        let workload = server.workload(10_000);
        let words = ["verify", &id, "--workload", &workload, "--restart", &restart];
        let words = [&words[..], &["--warm-up", "0", "--pairs", "1000"]].concat();
        for _ in 0..3 {
            let verification = start(&untax, &words);
            wait_for("the plan is tried", || server.limit() != before);
            let restarted = count();
            kill(verification);
            wait_for("the plan is undone", || server.limit() == before);
            wait_for("the server is restarted", || count() > restarted);
        }

        apply(&untax, &id);
        let applied = server.limit();
        let verification = start(&untax, &words);
        wait_for("the plan is undone for a trial", || server.limit() == before);
        kill(verification);
        wait_for("the plan is applied again", || server.limit() == applied);
        let receipts = untax.run(&["undo", "--json"]).json();
        let of_status = |status: &str| {
            let receipts = receipts.as_array().unwrap().iter();
            receipts.filter(|receipt| receipt["status"] == status).collect::<Vec<_>>()
        };
        let [receipt] = of_status("applied")[..] else { panic!("{receipts:#}") };
        assert!(of_status("interrupted").is_empty(), "{receipts:#}");
        assert_eq!(untax.run(&["undo", receipt["receipt"].as_str().unwrap()]).code, 0);
        assert_eq!(server.limit(), before);
        Ok(())
    });
}

/// The rates of the trials that a verification has saved so far.
fn saved_rates(untax: &Untax) -> Vec<f64> {
    let files = texts(&untax.path("state"));
    let is_part = |path: &Path| path.to_string_lossy().ends_with(".part.json");
    let part = files.into_iter().find(|(path, _)| is_part(path));
    let saved: Option<Value> = part.and_then(|(_, text)| serde_json::from_str(&text).ok());
    let trials = saved.and_then(|saved| saved["trials"].as_array().cloned());
    trials.into_iter().flatten().filter_map(|trial| trial["outcome"].as_f64()).collect()
}

#[test]
fn a_verification_that_was_killed_goes_on_with_the_trials_that_it_had() {
    support::real(|| {
        let redis = Redis::start(Runtime::Host, &[])?;
        let untax = Untax::new();
        let plan = support::plan_of_a_file(&untax, redis.pid().unwrap());
        // Its rate is the number of its run, which no other has. The count is replaced by a rename:
        // a run that is killed while it writes must not leave an empty one.
        let count = untax.path("count").display().to_string();
        let workload = format!(
            "n=$(($(cat {count} 2>/dev/null) + 1)); echo $n >{count}.next; \
             mv {count}.next {count}; echo $n; sleep 0.2"
        );
        let words = ["verify", &plan, "--workload", &workload, "--warm-up", "0", "--pairs", "8"];
        let mut kept = Vec::new();
        for least in [3, 6] {
            let verification = start(&untax, &words);
            wait_for("more trials are saved", || saved_rates(&untax).len() >= least);
            kill(verification);
            wait_for("the plan is undone", || !untax.path(support::MARKER).exists());
            let saved = saved_rates(&untax);
            assert_eq!(saved[..kept.len()], kept[..], "what it had before stays");
            kept = saved;
        }
        let ended = untax.run(&[&words[..], &["--json"]].concat());
        let said = format!("going on with {} trials", kept.len());
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        let verified = ended.json();
        let trials = verified["trials"].as_array().unwrap();
        let rates: Vec<f64> = trials.iter().map(|trial| trial["rate"].as_f64().unwrap()).collect();
        assert_eq!(rates[..kept.len()], kept[..], "{verified:#}");
        assert!(rates.is_sorted_by(|one, next| one < next), "each run is one trial: {rates:?}");
        assert!(rates.len() > kept.len(), "it made the others: {rates:?}");
        assert_eq!(saved_rates(&untax), [0.0; 0], "nothing is left to go on with");
        Ok(())
    });
}

#[test]
fn what_a_workload_made_is_dropped_when_untax_was_killed() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "64MB")])?;
        let untax = Untax::new();
        let databases = || postgres.sql("SELECT datname FROM pg_database ORDER BY 1").unwrap();
        let before = databases();
        let plan = support::plan_of_a_file(&untax, postgres.pid().unwrap());
        let words = ["verify", &plan, "--workload", "pgbench", "--trial", "2s", "--clients", "4"];
        let verification = start(&untax, &words);
        wait_for("the workload has its data", || databases() != before);
        kill(verification);
        wait_for("the data are dropped", || databases() == before);
        Ok(())
    });
}

#[test]
fn a_plan_that_is_applied_half_way_is_not_compared_with_itself() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[])?;
        let untax = Untax::new();
        let plan = support::plan_of_a_file(&untax, postgres.pid().unwrap());
        let receipt = apply(&untax, &plan);
        // As if it had been killed before it said that all was done.
        let file = untax.path(&format!("state/receipts/{receipt}.jsonl"));
        let whole = std::fs::read_to_string(&file).unwrap();
        let end = whole.trim_end().rfind('\n').unwrap() + 1;
        std::fs::write(&file, &whole[..end]).unwrap();
        let refused = untax.run(&["verify", &plan, "--workload", "true"]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("untax undo {receipt}")), "{}", refused.stderr);
        assert_eq!(untax.run(&["undo", &receipt]).code, 0);
        Ok(())
    });
}
