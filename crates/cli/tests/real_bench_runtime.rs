//! `untax bench runtime` on this very machine: real containers, servers and loads, and what it refuses.

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
use support::{Untax, real};
use untax_scenes::{Redis, RedisBenchmark, Runtime, find_program};

/// Arms of a cell by id.
fn arm<'a>(cell: &'a Value, id: &str) -> &'a Value {
    let arms = cell["arms"].as_array().unwrap();
    arms.iter().find(|arm| arm["arm"] == id).unwrap_or_else(|| panic!("no {id} in {cell}"))
}

/// Values of all trials of an arm.
fn values(cell: &Value, id: &str) -> Vec<f64> {
    let trials = arm(cell, id)["trials"].as_array().unwrap();
    trials.iter().map(|trial| trial["value"].as_f64().unwrap()).collect()
}

/// Directories of control groups and files that a bench would leave.
fn left() -> Vec<String> {
    let groups = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let directories = groups.map(|entry| entry.path()).chain(["/sys/fs/cgroup".into()]);
    let inside = directories.flat_map(|path| fs::read_dir(path).into_iter().flatten().flatten());
    let networks = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let all = inside.chain(networks).map(|entry| entry.path().display().to_string());
    all.filter(|path| path.contains("/untax-lab-")).collect()
}

/// A program that only computes; killed when dropped.
struct Hog(std::process::Child);

impl Hog {
    fn start() -> Self {
        let mut command = std::process::Command::new("/bin/sh");
        Self(command.args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_trial_beside_a_program_that_computes_is_spoiled_and_gives_no_figure() {
    real(|| {
        let _hog = Hog::start();
        let untax = Untax::new();
        let line = ["bench", "runtime", "--arms", "host-cgroup", "--workloads", "memory-copy"];
        let short = ["--trial", "300ms", "--blocks", "1", "--budget", "20s", "--json"];
        let result = untax.run(&[&line[..], &short].concat()).json();
        let cell = &result["cells"][0];
        assert_eq!((&cell["state"], &cell["noise"]), (&"spoiled".into(), &Value::Null), "{cell:#}");
        for id in ["host", "host-cgroup"] {
            assert_eq!(
                (&arm(cell, id)["value"], &arm(cell, id)["ratio"]),
                (&Value::Null, &Value::Null)
            );
            for trial in arm(cell, id)["trials"].as_array().unwrap() {
                let guards = trial["spoiled"].as_array().unwrap().iter();
                assert!(guards.clone().any(|guard| guard["id"] == "others-busy"), "{trial:#}");
            }
        }
        Ok(())
    });
}

#[test]
fn servers_and_work_are_measured_in_a_container_and_a_second_run_goes_on() {
    real(|| {
        find_program("runc", "runc")?;
        find_program("redis-server", "redis-server")?;
        let untax = Untax::new();
        let line = ["bench", "runtime", "--beside", "--arms", "runc", "--trial", "200ms"];
        let work = ["--workloads", "redis-get,system-calls,tcp-rr", "--budget", "60s", "--json"];
        let run = |more: &[&str]| untax.run(&[&line[..], &work, more].concat()).json();
        let first = run(&["--blocks", "1"]);
        assert_eq!(first["schema"], "untax.bench.runtime/1");
        for cell in first["cells"].as_array().unwrap() {
            assert_eq!(cell["state"], "measured", "{cell:#}");
            for id in ["host", "runc"] {
                assert!(values(cell, id)[0] > 0.0, "{cell:#}");
            }
            assert_eq!(cell["noise"]["ratios"].as_array().unwrap().len(), 1, "{cell:#}");
        }
        let redis = &first["cells"][0];
        let extra = |id: &str| {
            let extras = arm(redis, "host")["extras"].as_array().unwrap().iter();
            extras.clone().find(|extra| extra["id"] == id).and_then(|extra| extra["value"].as_f64())
        };
        // A request is read and its reply is written, whatever else the server does.
        assert!(extra("latency-p99").is_some_and(|us| us > 0.0), "{redis:#}");
        assert!(extra("machine-cpu").is_some_and(|us| us > 0.0), "{redis:#}");
        if find_program("strace", "strace").is_ok() {
            assert!(extra("system-calls").is_some_and(|calls| calls >= 2.0), "{redis:#}");
        }
        let second = run(&["--blocks", "2", "--resume"]);
        for (before, after) in
            first["cells"].as_array().unwrap().iter().zip(second["cells"].as_array().unwrap())
        {
            assert_eq!(values(after, "runc").len(), 2, "{after:#}");
            let [kept, made] = [after, before].map(|cell| values(cell, "runc")[0].to_bits());
            assert_eq!(kept, made, "trials are kept");
        }
        assert_eq!(left(), Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn a_guard_fails_a_build_and_junit_says_so() {
    real(|| {
        find_program("runc", "runc")?;
        let untax = Untax::new();
        let junit = untax.path("junit.xml");
        let guards = ["--fail-if", "command:runc/host < 1000", "--fail-if", "runc/host < 0.000001"];
        let line = ["bench", "runtime", "--beside", "--arms", "runc", "--workload", "sleep 0.01"];
        let more = ["--workloads", "command", "--blocks", "6", "--budget", "60s"];
        let form = ["--format", "markdown", "--junit", junit.to_str().unwrap()];
        let ran = untax.run(&[&line[..], &more, &guards, &form].concat());
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(
            ran.stdout.contains("`command:runc/host < 1000` failed in command"),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains("`runc/host < 0.000001` passed in command"), "{}", ran.stdout);
        let xml = fs::read_to_string(&junit).unwrap();
        assert!(xml.contains("failures=\"1\""), "{xml}");
        Ok(())
    });
}

#[test]
fn what_is_missing_here_is_said_in_one_line() {
    real(|| {
        find_program("runc", "runc")?;
        // Programs hidden in a mount namespace: nothing else sees that.
        let hide = "mount --bind /dev/null \"$(command -v runc)\" && \
                    mount --bind /dev/null \"$(command -v redis-server)\" && exec \"$@\"";
        let untax = Untax::confined(&["unshare", "--mount", "sh", "-c", hide, "hide"]);
        let line = ["bench", "runtime", "--list", "--arms", "runc", "--json"];
        let list = untax.run(&line).json();
        let arms = list["arms"].as_array().unwrap();
        let runc = arms.iter().find(|arm| arm["id"] == "runc").unwrap();
        assert!(runc["cannot"].as_str().unwrap().contains("apt-get install runc"), "{runc}");
        let cells = list["cells"].as_array().unwrap();
        let redis = cells.iter().find(|cell| cell["workload"] == "redis-get").unwrap();
        assert_eq!(redis["state"], "failed");
        assert!(
            redis["why"].as_str().unwrap().contains("redis-server is not installed"),
            "{redis}"
        );
        let other = ["bench", "runtime", "--list", "--arms", "kata", "--runtime", "kata=/nowhere"];
        let ran = Untax::new().run(&other);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("there is no program '/nowhere'"), "{}", ran.stdout);
        Ok(())
    });
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_started() {
    real(|| {
        let quick = ["bench", "runtime", "--arms", "host", "--budget", "5s"];
        let refused = |untax: &Untax, more: &[&str], code, named: &str| {
            let ran = untax.run(&[&quick[..], more].concat());
            assert_eq!(ran.code, code, "{more:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(named), "{more:?}: {}", ran.stderr);
            assert_eq!(ran.stdout, "", "{more:?}");
        };
        refused(&Untax::as_nobody(), &[], 2, "needs root");
        refused(&Untax::new(), &["--workloads", "chess"], 3, "redis-get");
        refused(&Untax::new(), &["--fail-if", "host"], 3, "--fail-if");
        let full = "mount -t tmpfs -o size=16m none /mnt && TMPDIR=/mnt exec \"$@\"";
        let full = Untax::confined(&["unshare", "--mount", "sh", "-c", full, "full"]);
        refused(&full, &["--beside"], 2, "of disk in /mnt");
        let redis = Redis::start(Runtime::Host, &[])?;
        let load = RedisBenchmark {
            clients: 4,
            requests: 20_000_000,
            keys: 1000,
            value_bytes: 16,
            writes: false,
        };
        let load = redis.benchmark(&load)?;
        std::thread::sleep(std::time::Duration::from_millis(500));
        refused(&Untax::new(), &[], 2, "busy databases");
        drop(load);
        Ok(())
    });
}
