//! A plan that keeps CPUs awake on this very machine, where it is a guest that could poll: applied, undone,
//! refused where sysfs is read-only, and proven with one client.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::{Untax, apply, plan, text};
use untax_scenes::{Redis, Runtime};

const KNOB: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

/// A Redis, and a plan for it whose one step is the knob. The finding is added to its check: a machine that is
/// busy with other tests has no idle CPUs to wake. `None` where there is no knob.
fn planned(untax: &Untax) -> Option<(Redis, String, Value)> {
    if !fs::exists(KNOB).unwrap() {
        println!("skipped: this kernel has no {KNOB}");
        return None;
    }
    let redis = Redis::start(Runtime::Host, &[]).unwrap();
    let check = untax.check(redis.pid().unwrap());
    let run = check["run"].as_str().unwrap();
    let path = untax.path(&format!("state/runs/{run}.json"));
    let mut saved: Value = serde_json::from_str(&text(path.to_str().unwrap())).unwrap();
    saved["check"]["databases"][0]["findings"] = json!([{
        "rule": "idle-wakeup", "scope": "platform", "severity": "high", "summary": "added by a test",
        "fix": "poll", "evidence": [], "tax": null, "gain": null, "remedy": "halt-poll",
    }]);
    fs::write(&path, saved.to_string()).unwrap();
    let (id, plan) = plan(untax, "idle-wakeup", &["--from", run]);
    Some((redis, id, plan))
}

#[test]
fn cpus_poll_while_the_plan_is_applied_and_a_read_only_sysfs_is_said_to_be() {
    support::real(|| {
        let untax = Untax::new();
        let before = text(KNOB);
        let Some((_redis, id, made)) = planned(&untax) else { return Ok(()) };
        let warnings = made["warnings"].to_string();
        assert!(warnings.contains("halt-poll-price"), "{warnings}");
        let cmdline = text("/proc/cmdline").replace('-', "_");
        let is_decided = cmdline.contains("haltpoll.guest_halt_poll_ns=");
        assert_eq!(warnings.contains("halt-poll-decided"), is_decided, "{warnings}");
        // In a mount namespace of its own sysfs is read-only, as in a container.
        let script = "mount -o remount,bind,ro /sys && exec \"$0\" \"$@\"";
        let state = untax.path("state");
        let ran = std::process::Command::new("unshare")
            .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_untax"), "--state-dir"])
            .arg(&state)
            .args(["apply", &id])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && said.contains("halt-poll"), "{said}");
        assert!(said.contains("ead-only"), "{said}");
        assert_eq!(text(KNOB), before, "{said}");
        let receipt = apply(&untax, &id);
        assert_eq!(text(KNOB).trim(), "200000");
        assert_eq!(untax.run(&["undo", &receipt]).code, 0);
        assert_eq!(text(KNOB), before);
        Ok(())
    });
}

#[test]
#[ignore = "long: a verification of some eight pairs"]
fn polling_is_proven_with_one_client_and_put_back() {
    support::real(|| {
        let untax = Untax::new();
        let before = text(KNOB);
        let Some((_redis, id, _)) = planned(&untax) else { return Ok(()) };
        let words = ["verify", &id, "--workload", "redis-benchmark", "--trial", "2s", "--json"];
        let verified = untax.run(&words).json();
        let verdict = &verified["verdict"];
        println!("{verdict:#}");
        assert!(verdict["measured"]["mid"].as_f64().unwrap() > 1.0, "{verdict}");
        assert_ne!(verdict["word"], "disproven");
        let knob = |applied: bool| {
            let mut trials = verified["trials"].as_array().unwrap().iter();
            let trial = trials.find(|trial| trial["applied"] == applied).unwrap();
            trial["sleeps"]["knob"].as_str().unwrap().to_owned()
        };
        assert!(knob(true).ends_with("guest_halt_poll_ns 200000"), "{}", knob(true));
        assert!(knob(false).ends_with(&format!("guest_halt_poll_ns {}", before.trim())));
        assert_eq!(text(KNOB), before);
        Ok(())
    });
}
