//! SIGKILL of `untax apply`, once it has set `guest_halt_poll_ns`, of `untax undo`, once it has put it back, and
//! of a lab that has set it: it is as before after `untax undo --stale`.
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
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use support::{Untax, plan, text};
use untax_scenes::{Redis, Runtime, Turn};

const KNOB: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

/// How much later than the change a kill comes at most: apply and undo end soon after it.
const LATEST_US: u64 = 3_000;

/// The same of a lab, which goes on to its checks and trials.
const LATEST_LAB_MS: u64 = 3_000;

/// Longer than any command here takes: ends one that hangs, measures nothing.
const HUNG: Duration = Duration::from_secs(900);

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
    // The lab takes it.
    drop(turn);
    let mut running = [0; 3];
    for time in 1..=*times {
        if time % LAB_EVERY == 0 {
            running[2] += u32::from(kill_of_lab(&before, &mut rng));
        } else {
            let [apply, undo] = kill_of_plan(&untax, &id, &before, &mut rng);
            running[0] += u32::from(apply);
            running[1] += u32::from(undo);
        }
        assert_eq!(text(KNOB), before, "kill {time}");
    }
    let (labs, [apply, undo, lab]) = (times / LAB_EVERY, running);
    println!(
        "{times} kills between the change and its end: {apply} of {0} of apply while it ran, {undo} of {0} of \
         undo, {lab} of {labs} of a lab; the knob is as before after each",
        times - labs
    );
    ExitCode::SUCCESS
}

/// The program, to be killed itself.
fn start(untax: &Untax, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
    command.arg("--state-dir").arg(untax.path("state")).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a command soon after it has changed the knob. Gives whether it still ran.
fn killed_once_changed(mut child: Child, from: &str, delay: Duration) -> bool {
    let since = Instant::now();
    loop {
        // Before the look: it may change the knob and end right after it.
        let ended = child.try_wait().unwrap().is_some();
        if text(KNOB) != from {
            break;
        }
        assert!(!ended && since.elapsed() < HUNG, "it changed nothing");
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(delay);
    let runs = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    runs
}

/// The receipts that there are.
fn receipts(untax: &Untax) -> Vec<String> {
    let files = fs::read_dir(untax.path("state/receipts")).into_iter().flatten().flatten();
    let stem = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    files.filter_map(|file| stem(file.path())).collect()
}

/// Kills apply, undoes what is left, applies whole, kills undo. Gives whether each was caught half way.
fn kill_of_plan(untax: &Untax, id: &str, before: &str, rng: &mut fastrand::Rng) -> [bool; 2] {
    let _turn = Turn::wait().unwrap();
    let known = receipts(untax);
    let mut delay = || Duration::from_micros(rng.u64(..LATEST_US));
    let apply = killed_once_changed(start(untax, &["apply", id]), before, delay());
    assert_ne!(text(KNOB), before, "nobody else puts it back");
    let is_new = |receipt: &String| !known.contains(receipt);
    let made: Vec<String> = receipts(untax).into_iter().filter(is_new).collect();
    assert_eq!(made.len(), 1, "what was changed has a receipt");
    untax.run(&["undo", "--stale"]);
    for receipt in made {
        // One that was applied whole is not stale.
        untax.run(&["undo", &receipt]);
    }
    assert_eq!(text(KNOB), before, "after a kill of apply");
    let receipt = support::apply(untax, id);
    let set = text(KNOB);
    assert_eq!(set.trim(), "200000");
    let undo = killed_once_changed(start(untax, &["undo", &receipt]), &set, delay());
    assert_eq!(text(KNOB), before, "after a kill of undo");
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

/// Kills a lab soon after it has let CPUs sleep or kept them awake. Gives whether it still ran.
fn kill_of_lab(before: &str, rng: &mut fastrand::Rng) -> bool {
    let untax = Untax::new();
    let words = ["lab", "run", "idle-wakeup", "--engine", "redis", "--window", "2s"];
    let delay = Duration::from_millis(rng.u64(..LATEST_LAB_MS));
    let runs = killed_once_changed(start(&untax, &words), before, delay);
    // Its guard has the turn until all is put back.
    let since = Instant::now();
    let _turn = Turn::wait().unwrap();
    assert!(since.elapsed() < WITHIN, "the lab's guard was too slow");
    runs
}
