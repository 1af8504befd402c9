//! Captures and saved runs of live servers: they replay to the same findings, and hold no secrets.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::limited::Limited;
use support::{Bystander, Untax, database, rules, texts};
use untax_scenes::{MariaDb, Pgbench, Postgres, Redis, Runtime};

/// The findings that do not depend on what else the machine did at that moment.
fn lasting(check: &Value) -> Vec<&str> {
    rules(check).into_iter().filter(|rule| !["cpu-contended", "vm-steal"].contains(rule)).collect()
}

#[test]
fn a_capture_replays_elsewhere_to_the_same_findings() {
    support::real(|| {
        let settings = [("shared_buffers", "512MB"), ("huge_pages", "off")];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(5, 20)?;
        let redis = Redis::start(Runtime::Runc, &[])?;
        let load = postgres.pgbench(&Pgbench { seconds: 600, ..Pgbench::default() })?;
        let pids = [postgres.pid().unwrap(), redis.pid().unwrap()];
        let untax = Untax::new();
        let elsewhere = Untax::as_nobody();
        let replay = |name: &str| elsewhere.run(&["check", "--replay", name, "--json"]).json();
        let mut number = 0;
        // Two windows, one after the other: what a busy machine does to one may be of no other.
        let (name, live) = support::one_of(4, || {
            number += 1;
            let name = format!("host-{number}.tar.gz");
            let file = untax.path(&name);
            let captured = untax.run(&["capture", file.to_str().unwrap(), "--window", "3s"]);
            assert_eq!(captured.code, 0, "{}", captured.stderr);
            let live = untax.run(&["check", "--window", "3s", "--json"]).json();
            elsewhere.take(&file);
            let replayed = replay(&name);
            for pid in pids {
                let [then, now] = [&live, &replayed].map(|check| lasting(database(check, pid)));
                support::demand(then == now, || format!("{then:?} and {now:?}"))?;
            }
            Ok((name, live))
        });
        drop((load, redis, postgres));

        // Another user without privilege, on a machine where none of these processes is.
        let replayed = replay(&name);
        for pid in pids {
            let (then, now) = (database(&live, pid), database(&replayed, pid));
            assert_eq!(lasting(then), lasting(now), "{then:#} {now:#}");
            for name in ["id", "version", "model", "container", "huge_pages", "data_directory"] {
                assert_eq!(then[name], now[name], "{name}");
            }
            assert_eq!(names(&then["settings"]), names(&now["settings"]));
            assert_eq!(then["memory"]["page_size_bytes"], now["memory"]["page_size_bytes"]);
            // The heap of Redis grows and shrinks by pages from one look to the next.
            let bytes = |db: &Value| db["memory"]["shared_bytes"].as_f64().unwrap();
            assert!((bytes(then) / bytes(now) - 1.0).abs() < 0.05, "{then:#} {now:#}");
        }
        for name in ["cpu", "tlb", "kernel", "hugepages", "thp", "cgroup", "distribution"] {
            assert_eq!(live["host"][name], replayed["host"][name], "{name}");
        }
        Ok(())
    });
}

#[test]
fn a_capture_holds_traced_time_and_disks_and_is_planned_from() {
    support::real(|| {
        // So low that it is met beside other programs, too.
        let server = Limited::start(0.05)?;
        let load = server.load()?;
        let untax = Untax::new();
        let file = untax.path("host.tar.gz");
        let words = ["capture", file.to_str().unwrap(), "--window", "5s", "--no-calibration"];
        let captured = untax.run(&words);
        assert_eq!(captured.code, 0, "{}", captured.stderr);
        assert!(captured.stderr.contains("traced"), "it says what it holds: {}", captured.stderr);
        drop(load);
        let pid = server.pid();
        drop(server);

        let elsewhere = Untax::as_nobody();
        elsewhere.take(&file);
        let replayed = elsewhere.run(&["check", "--replay", "host.tar.gz", "--json"]).json();
        let found = database(&replayed, pid);
        let throttled_s = found["time"]["throttled_s"].as_f64();
        assert!(throttled_s.is_some_and(|seconds| seconds > 0.5), "{found:#}");
        let findings = found["findings"].as_array().unwrap();
        let throttled = findings.iter().find(|finding| finding["rule"] == "cpu-throttled").unwrap();
        assert!(throttled["tax"]["share"].as_f64().unwrap() > 0.3, "{throttled:#}");
        assert!(replayed["io"]["flows"].is_array(), "{}", replayed["io"]);
        let words = ["plan", "--from", "host.tar.gz", "--only", "cpu-throttled", "--json"];
        let plan = elsewhere.run(&words).json();
        assert_eq!(plan["steps"][0]["remedy"], "cpu-limit", "{plan:#}");
        Ok(())
    });
}

#[test]
fn a_saved_run_replays_to_the_very_same() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "128MB")])?;
        let untax = Untax::new();
        let live = untax.run(&["check", "--window", "1s", "--json"]).json();
        drop(postgres);
        let run = live["run"].as_str().unwrap();
        let replayed = untax.run(&["check", "--replay", run, "--json"]).json();
        for name in ["host", "databases", "findings", "unmeasured", "window_s", "run"] {
            assert_eq!(live[name], replayed[name], "{name}");
        }
        Ok(())
    });
}

/// Where the settings are from, and what they are. Not their values: some of Redis's change.
fn names(settings: &Value) -> (&Value, Vec<&String>) {
    (&settings["source"], settings["values"].as_object().unwrap().keys().collect())
}

/// Words that must not get into a capture, wherever the servers keep them.
const SECRETS: [&str; 10] = [
    "zebra-redis-password",
    "zebra-redis-upstream",
    "zebra-postgres-upstream",
    "zebra-postgres-note",
    "zebra-query-text",
    "zebra-mariadb-cluster",
    "zebra-bystander-argument",
    "zebra-redis-argument",
    "zebra-redis-words",
    "zebra-bystander-environment",
];

#[test]
fn captures_and_saved_runs_hold_no_secrets() {
    support::real(|| {
        let [password, upstream, replica, note, query, cluster, ..] = SECRETS;
        let redis =
            Redis::start(Runtime::Host, &[("requirepass", password), ("masterauth", upstream)])?;
        let upstream = format!("host=127.0.0.1 password={replica}");
        let settings = [("primary_conninfo", upstream.as_str()), ("lab.note", note)];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        let cluster = format!("user:{cluster}");
        let mariadb = MariaDb::start(Runtime::Host, &[("wsrep_sst_auth", &cluster)])?;
        let (untax, nobody) = (Untax::new(), Untax::as_nobody());
        let bystanders = bystanders(&untax.path("socket").to_string_lossy());
        let check = while_asleep(&postgres, query, || {
            capture(&nobody);
            capture(&untax);
            untax.run(&["check", "--window", "1s", "--no-calibration", "--json"]).json()
        });
        // Those that hold the secrets were looked at.
        for pid in [redis.pid(), postgres.pid(), mariadb.pid(), Some(bystanders[0].id())] {
            database(&check, pid.unwrap());
        }
        for folder in [untax.path("capture"), untax.path("state"), nobody.path("capture")] {
            for (path, text) in texts(&folder) {
                let found = SECRETS.iter().find(|secret| text.contains(**secret));
                assert_eq!(found, None, "in {}", path.display());
            }
        }
        Ok(())
    });
}

/// A server and a tool that show their secrets to everyone.
fn bystanders(socket: &str) -> [Bystander; 2] {
    let [.., argument, word, words, environment] = SECRETS;
    let mut server = Command::new("redis-server");
    // Redis takes a setting as two arguments or as one, and can be told to leave them to see.
    server.args(["--port", "0", "--unixsocket", socket, "--set-proc-title", "no"]).args([
        "--requirepass",
        word,
        &format!("--masterauth {words}"),
    ]);
    let mut tool = Command::new("sh");
    tool.args(["-c", "read -r line", "tool", &format!("--token={argument}"), argument]);
    tool.env("TOKEN", environment).stdin(Stdio::piped());
    [server, tool].map(Bystander::start)
}

fn capture(untax: &Untax) {
    let words = ["capture", "capture", "--window", "1s", "--no-calibration", "--json"];
    let captured = untax.run(&words).json();
    assert_eq!(captured["path"], "capture");
    assert!(captured["databases"].as_array().is_some_and(|all| !all.is_empty()), "{captured}");
}

/// Does something while a query with this text runs.
fn while_asleep<T>(postgres: &Postgres, text: &str, meanwhile: impl FnOnce() -> T) -> T {
    let sleep = format!("SELECT '{text}', pg_sleep(600)");
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| postgres.sql(&sleep));
        let done = meanwhile();
        let others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
        postgres.sql(&format!("SELECT pg_terminate_backend(pid) {others}")).unwrap();
        assert!(sleeping.join().unwrap().is_err(), "it was not asleep all the time");
        done
    })
}
