//! `untax steer` on real servers and their threads.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Untax, text};
use untax_scenes::{Redis, Runtime};

/// Ends a wait that nothing would; measures nothing.
const HUNG: Duration = Duration::from_secs(60);

/// The CPUs of each thread of a process, as the kernel lists them.
fn masks(pid: u32) -> BTreeMap<u32, String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mask = |thread: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some((thread, list.trim().to_owned()))
    };
    let numbers = threads.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    numbers.filter_map(mask).collect()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < HUNG, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_server_is_steered_told_of_and_put_back() {
    support::real(|| {
        let redis = Redis::start(Runtime::Host, &[])?;
        let (pid, untax) = (redis.pid().unwrap(), Untax::new());
        let before = masks(pid);
        let all = before[&pid].clone();
        if all == "0" {
            return Ok(());
        }
        // A thread that has chosen its CPU is left alone.
        let own = *before.keys().last().unwrap();
        let set =
            Command::new("taskset").args(["-p", "-c", "1", &own.to_string()]).output().unwrap();
        assert!(set.status.success());

        let outside = untax.run(&["steer", "--instance", &format!("{pid}=4000")]);
        assert_eq!(outside.code, 2, "{}", outside.stderr);
        assert!(outside.stderr.contains("choose others"), "{}", outside.stderr);
        let taken = untax.run(&["steer", "--instance", &format!("{pid}=1")]);
        assert!(taken.stderr.contains("has chosen CPUs 1 itself"), "{}", taken.stderr);

        let name = format!("redis@{}=0/hard", redis.port());
        let words = ["steer", "--instance", &name, "--json"];
        let steering =
            untax.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("it is steered", || masks(pid)[&pid] == "0");
        let narrowed = masks(pid);
        assert!(
            narrowed.iter().all(|(thread, mask)| mask == if *thread == own { "1" } else { "0" })
        );
        let status = untax.run(&["steer", "status", "--json"]).json();
        assert_eq!(status["masks"][0]["cpus"], "0", "{status}");
        assert_eq!(status["masks"][0]["threads"], narrowed.len() - 1, "{status}");
        let second = untax.run(&["steer", "--instance", &name]);
        assert!(second.stderr.contains("steered already"), "{}", second.stderr);

        assert_eq!(untax.run(&["steer", "stop"]).code, 0);
        let ended = support::Ran::from(&steering.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let events = lines(&ended.stdout);
        assert!(events.iter().all(|event| event["schema"] == "untax.steer/1"));
        assert_eq!(events[0]["event"], "started");
        assert_eq!(events[0]["instances"][0]["own_threads"], 1, "{}", events[0]);
        assert_eq!(events.last().unwrap()["event"], "ended");
        let after = masks(pid);
        assert!(
            after.iter().all(|(thread, mask)| *mask == if *thread == own { "1" } else { &*all })
        );
        assert_eq!(untax.run(&["steer", "status", "--json"]).json()["run"], Value::Null);
        Ok(())
    });
}

#[test]
fn a_pooler_is_steered_along_with_its_server() {
    support::real(|| {
        let redis = Redis::start(Runtime::Host, &[])?;
        let (pid, untax) = (redis.pid().unwrap(), Untax::new());
        let all = masks(pid)[&pid].clone();
        if all == "0" {
            return Ok(());
        }
        let mut pooler = Command::new("sleep").arg("600").spawn().unwrap();
        let both = [pid, pooler.id()];
        let mask = |pid: u32| masks(pid)[&pid].clone();
        let instance = format!("{pid}+{}=0/hard", pooler.id());
        let words = ["steer", "--instance", &instance, "--json"];
        let steering = untax.command(&words).stdout(Stdio::piped()).spawn().unwrap();
        wait_for("both are steered", || both.iter().all(|pid| mask(*pid) == "0"));
        assert_eq!(untax.run(&["steer", "stop"]).code, 0);
        let events = lines(&text_of(steering));
        assert_eq!(events[0]["instances"].as_array().unwrap().len(), 1, "{}", events[0]);
        assert!(both.iter().all(|pid| mask(*pid) == all));
        pooler.kill().unwrap();
        pooler.wait().unwrap();
        let gone = untax.run(&["steer", "--instance", &instance]);
        assert!(gone.stderr.contains("has ended"), "{}", gone.stderr);
        Ok(())
    });
}

fn text_of(child: std::process::Child) -> String {
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn a_cpuset_that_changes_under_it_is_followed_and_never_left() {
    support::real(|| {
        let root = ["/sys/fs/cgroup/cpuset", "/dev/cpuset"]
            .into_iter()
            .find(|root| std::path::Path::new(root).join("cpuset.cpus").exists());
        let (Some(root), true) = (root, text("/sys/devices/system/cpu/online").trim() != "0")
        else {
            return Ok(());
        };
        let redis = Redis::start(Runtime::Host, &[])?;
        let (pid, untax) = (redis.pid().unwrap(), Untax::new());
        let group = format!("{root}/untax-steer-test-{}", std::process::id());
        fs::create_dir(&group).unwrap();
        let _gone = Gone(group.clone());
        let set = |file: &str, value: &str| fs::write(format!("{group}/{file}"), value).unwrap();
        set("cpuset.mems", text(&format!("{root}/cpuset.mems")).trim());
        set("cpuset.cpus", "0-1");
        set("cgroup.procs", &pid.to_string());

        let instance = format!("{pid}=0");
        let mut steering = untax
            .command(&["steer", "--instance", &instance])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("it is steered", || masks(pid)[&pid] == "0");
        // None of its preferred CPUs is left: it has all of its cpuset, and no more.
        set("cpuset.cpus", "1");
        wait_for("it is moved", || masks(pid)[&pid] == "1");
        set("cpuset.cpus", "0-1");
        wait_for("it is at home again", || masks(pid)[&pid] == "0");
        // It ends while its mask does not show, as its cpuset has none of these CPUs.
        set("cpuset.cpus", "1");
        wait_for("it is moved again", || masks(pid)[&pid] == "1");
        assert_eq!(untax.run(&["steer", "stop"]).code, 0);
        steering.wait().unwrap();
        set("cpuset.cpus", "0-1");
        wait_for("all is put back", || masks(pid).values().all(|mask| mask == "0-1"));
        assert_eq!(text(&format!("{group}/cpuset.cpus")).trim(), "0-1", "no cpuset is written");
        // Its server leaves the group before that is removed.
        fs::write(format!("{root}/cgroup.procs"), pid.to_string()).unwrap();
        Ok(())
    });
}

#[test]
fn a_plan_that_hands_over_steering_is_verified_in_three_arms() {
    support::real(|| {
        if text("/sys/devices/system/cpu/online").trim() == "0" {
            return Ok(());
        }
        let redis = Redis::start(Runtime::Host, &[])?;
        let (pid, untax) = (redis.pid().unwrap(), Untax::new());
        let before = masks(pid);
        let plan = support::plan_of_a_file(&untax, pid);
        let instance = format!("redis@{}=0", redis.port());
        let words =
            ["verify", &plan, "--steer", "--instance", &instance, "--json", "--warm-up", "0"];
        let more = ["--workload", "redis-benchmark", "--trial", "1s", "--clients", "4"];
        let pairs = ["--pairs", "2"];
        let verified = untax.run(&[&words[..], &more, &pairs].concat()).json();
        assert_eq!(verified["measure"], "requests per second");
        assert_eq!(verified["trials"].as_array().unwrap().len(), 4, "{verified}");
        let affinity = &verified["affinity"];
        assert_eq!(affinity["hard_trials"].as_array().unwrap().len(), 2, "{affinity}");
        assert_eq!(affinity["preferred"][format!("redis@{}", redis.port())], "0");
        for verdict in [&affinity["hard"], &affinity["soft_over_hard"], &verified["verdict"]] {
            assert_eq!(verdict["pairs"], 2, "{verified}");
        }
        assert!(!untax.path(support::MARKER).exists(), "no step of the plan is done");
        assert_eq!(masks(pid), before);
        assert_eq!(untax.run(&["steer", "status", "--json"]).json()["run"], Value::Null);
        Ok(())
    });
}

/// A control group that is removed in the end.
struct Gone(String);

impl Drop for Gone {
    fn drop(&mut self) {
        let parent = self.0.rsplit_once('/').map_or("", |(parent, _)| parent);
        let members = fs::read_to_string(format!("{}/cgroup.procs", self.0)).unwrap_or_default();
        for member in members.lines() {
            let _ = fs::write(format!("{parent}/cgroup.procs"), member);
        }
        let _ = fs::remove_dir(&self.0);
    }
}
