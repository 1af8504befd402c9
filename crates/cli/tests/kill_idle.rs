//! SIGKILL at random moments of `untax apply` and `untax undo` of a plan that keeps CPUs awake, and of a lab
//! that lets them sleep: `guest_halt_poll_ns` is as before after `untax undo --stale`.
//!
//! `cargo test -p untax --test kill_idle -- TIMES [SEED]` as root, with no lab running meanwhile.
//! Without TIMES it says how to run it and does nothing: it changes a setting of the whole machine.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it is told a number, says how it went, and looks at the machine by other ways than the code \
              that it tests"
)]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use support::{Untax, plan, text};
use untax_scenes::{Redis, Runtime, Turn};

const KNOB: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

/// A lab has started its server and set the knob by then.
const LATEST_LAB_MS: u64 = 6_000;

/// One kill of a lab for so many of a plan: each takes some ten seconds.
const LAB_EVERY: u64 = 5;

/// A lab's server gets a minute to end in good order.
const WITHIN: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    if let Some(code) = untax_changes::guard::main(std::env::args_os()) {
        return code;
    }
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let Some(times) = numbers.first() else {
        println!("not run: cargo test -p untax --test kill_idle -- TIMES");
        return ExitCode::SUCCESS;
    };
    if !std::path::Path::new(KNOB).exists() {
        println!("not run: this kernel has no {KNOB}");
        return ExitCode::SUCCESS;
    }
    let mut rng = fastrand::Rng::with_seed(numbers.get(1).copied().unwrap_or(1));
    let turn = Turn::wait().expect("root, and its turn");
    let before = text(KNOB);
    let redis = Redis::start(Runtime::Host, &[]).unwrap();
    let untax = Untax::new();
    let id = plan_of_halt_poll(&untax, redis.pid().unwrap());
    // What nobody kills takes about as long as the latest kill.
    let since = Instant::now();
    let receipt = support::apply(&untax, &id);
    let whole = since.elapsed();
    untax.run(&["undo", &receipt]);
    // The lab takes it.
    drop(turn);
    let mut caught = [0; 3];
    for time in 1..=*times {
        let what = if time % LAB_EVERY == 0 {
            let state = kill_of_lab(&mut rng);
            caught[2] += u32::from(state != before);
            "a lab"
        } else {
            let [apply, undo] = kill_of_plan(&untax, &id, &before, whole, &mut rng);
            caught[0] += u32::from(apply);
            caught[1] += u32::from(undo);
            "a plan"
        };
        assert_eq!(text(KNOB), before, "kill {time}, of {what}");
    }
    let [apply, undo, lab] = caught;
    println!(
        "{times} kills: {apply} of apply after the knob was set, {undo} of undo after it was put back, {lab} \
         of a lab that had set it; it is as before after each"
    );
    ExitCode::SUCCESS
}

/// The program, to be killed itself.
fn start(untax: &Untax, words: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
    command.arg("--state-dir").arg(untax.path("state")).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a command soon after it began.
fn killed(untax: &Untax, words: &[&str], whole: Duration, rng: &mut fastrand::Rng) {
    let mut child = start(untax, words);
    std::thread::sleep(whole.mul_f64(rng.f64()));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The receipts that there are.
fn receipts(untax: &Untax) -> Vec<String> {
    let files = fs::read_dir(untax.path("state/receipts")).into_iter().flatten().flatten();
    let stem = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    files.filter_map(|file| stem(file.path())).collect()
}

/// Kills apply, undoes what is left, applies whole, kills undo. Gives whether each was caught half way.
fn kill_of_plan(
    untax: &Untax,
    id: &str,
    before: &str,
    whole: Duration,
    rng: &mut fastrand::Rng,
) -> [bool; 2] {
    let _turn = Turn::wait().unwrap();
    let known = receipts(untax);
    killed(untax, &["apply", id], whole, rng);
    let is_new = |receipt: &String| !known.contains(receipt);
    let made: Vec<String> = receipts(untax).into_iter().filter(is_new).collect();
    let apply = text(KNOB) != before;
    untax.run(&["undo", "--stale"]);
    for receipt in made {
        // One that was applied whole is not stale.
        untax.run(&["undo", &receipt]);
    }
    assert_eq!(text(KNOB), before, "after a kill of apply");
    let receipt = support::apply(untax, id);
    assert_eq!(text(KNOB).trim(), "200000");
    killed(untax, &["undo", &receipt], whole, rng);
    let undo = text(KNOB) == before;
    untax.run(&["undo", "--stale"]);
    untax.run(&["undo", &receipt]);
    [apply, undo]
}

/// A plan whose only step is the knob: after a check to which the finding is added, because a machine that is
/// busy with other tests has no idle CPUs to wake.
fn plan_of_halt_poll(untax: &Untax, pid: u32) -> String {
    let check = untax.check(pid);
    let run = check["run"].as_str().unwrap();
    let path = untax.path(&format!("state/runs/{run}.json"));
    let mut saved: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    saved["check"]["databases"][0]["findings"] = json!([{
        "rule": "idle-wakeup", "scope": "platform", "severity": "high", "summary": "added by a test",
        "fix": "poll", "evidence": [], "tax": null, "gain": null, "remedy": "halt-poll",
    }]);
    fs::write(&path, saved.to_string()).unwrap();
    let (id, plan) = plan(untax, "idle-wakeup", &["--from", run]);
    let steps = plan["steps"].as_array().unwrap();
    assert_eq!(steps[0]["target"]["file"], KNOB, "{plan}");
    id
}

/// Kills a lab that lets CPUs sleep and keeps them awake by turns; gives what the knob was then.
fn kill_of_lab(rng: &mut fastrand::Rng) -> String {
    let untax = Untax::new();
    let words = ["lab", "run", "idle-wakeup", "--engine", "redis", "--window", "2s"];
    let mut lab = start(&untax, &words);
    std::thread::sleep(Duration::from_millis(1_000 + rng.u64(..LATEST_LAB_MS)));
    let then = text(KNOB);
    lab.kill().unwrap();
    lab.wait().unwrap();
    // Its guard has the turn until all is put back.
    let since = Instant::now();
    let _turn = Turn::wait().unwrap();
    assert!(since.elapsed() < WITHIN, "the lab's guard was too slow");
    then
}
