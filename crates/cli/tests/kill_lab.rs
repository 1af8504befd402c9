//! SIGKILL at random moments of `untax lab run`: soon after, no control group, mount, loop device,
//! network, process, file, shared memory or changed setting of the lab is left.
//!
//! `cargo test -p untax --test kill_lab -- TIMES [SEED]` as root, with no other lab running and
//! no other database started or stopped meanwhile.
//! Without TIMES it says how to run it and does nothing: it changes settings of the whole machine.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it is run by hand, says how it went, and looks at the machine by other ways than the \
              code that it tests"
)]

mod left;

use left::{gone, settings, things};
use std::fs;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use untax_lab::{CAUSES, Cause, Dose};
use untax_scenes::{Engine, Release, Turn};

/// Starting, filling and both checks take about as long as the latest kill.
const LATEST_MS: u64 = 30_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let Some(times) = numbers.first() else {
        println!("not run: cargo test -p untax --test kill_lab -- TIMES");
        return ExitCode::SUCCESS;
    };
    if !rustix::process::geteuid().is_root() {
        println!("not run: needs root");
        return ExitCode::FAILURE;
    }
    let mut rng = fastrand::Rng::with_seed(numbers.get(1).copied().unwrap_or(1));
    match run(*times, &mut rng) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(times: u64, rng: &mut fastrand::Rng) -> Outcome<bool> {
    let possible: Vec<(&Cause, Release)> = CAUSES
        .iter()
        .flat_map(|cause| Engine::ALL.map(|engine| (cause, Release::installed(engine))))
        .filter(|(cause, release)| cause.impossible(*release, Dose::Strong).is_none())
        .collect();
    // Not while another has changed them.
    let before = Turn::wait().map(|_turn| settings())?;
    let (mut failed, mut caught) = (0, 0);
    for time in 1..=times {
        let (cause, release) = *rng.choice(&possible).ok_or("no cause is possible here")?;
        let after = Duration::from_millis(rng.u64(..LATEST_MS));
        let (there, left) = kill_once(cause, release, after, &before)?;
        caught += u32::from(there > 0);
        failed += u32::from(left.is_err());
        let verdict = match left {
            Ok(took) => format!("gone after {:.1} s", took.as_secs_f64()),
            Err(left) => format!("LEFT: {}", left.join(", ")),
        };
        let (cause, release) = (cause.id, release.id);
        println!(
            "{time:>3}: {cause} on {release} killed after {after:.1?} with {there} things: {verdict}"
        );
    }
    println!("{times} kills, {caught} with something there, {failed} that left something");
    Ok(failed == 0 && (caught > 0 || times < 5))
}

/// Kills one run; gives how many things there were, and when all were gone or what was left.
fn kill_once(
    cause: &Cause,
    release: Release,
    after: Duration,
    before: &[String],
) -> Outcome<(usize, Result<Duration, Vec<String>>)> {
    let folder = tempfile::tempdir()?;
    let mut lab = Command::new(env!("CARGO_BIN_EXE_untax"))
        .arg("--state-dir")
        .arg(folder.path())
        .args(["lab", "run", cause.id, "--engine", release.id, "--window", "2s", "--pairs", "3"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // While another has the turn there is nothing to be killed in the middle of.
    while !has_begun(lab.id()) && lab.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(after);
    let there = things();
    lab.kill()?;
    let killed = Instant::now();
    lab.wait()?;
    // What was its own by name goes first: what stays may have the turn and never give it back.
    let own = || things().into_iter().filter(|thing| there.contains(thing)).collect();
    let took = match gone(killed, own) {
        Ok(took) => took,
        Err(left) => return Ok((there.len(), Err(left))),
    };
    // Then nothing at all may be left, and nobody else's lab is looked at.
    let _turn = Turn::wait()?;
    let all = || {
        let changed = settings().into_iter().filter(|setting| !before.contains(setting));
        things().into_iter().chain(changed).collect()
    };
    Ok((there.len(), gone(Instant::now(), all).map(|_| took)))
}

/// Whether it has the turn: then it has started the first of its shells.
fn has_begun(lab: u32) -> bool {
    let children = fs::read_to_string(format!("/proc/{lab}/task/{lab}/children"));
    children.is_ok_and(|children| !children.trim().is_empty())
}
