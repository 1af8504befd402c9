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

mod kills;
mod left;

use kills::{Kill, Outcome, gone, start};
use left::{WITHIN, settings, things};
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use untax_lab::{CAUSES, Cause, Dose};
use untax_scenes::{Engine, Release, Turn};

/// Starting, filling and both checks take about as long as the latest kill.
const LATEST_MS: u64 = 30_000;

fn main() -> ExitCode {
    let possible: Vec<(&Cause, Release)> = CAUSES
        .iter()
        .flat_map(|cause| Engine::ALL.map(|engine| (cause, Release::installed(engine))))
        .filter(|(cause, release)| cause.impossible(*release, Dose::Strong).is_none())
        .collect();
    // Not while another has changed them.
    let begin = || Ok(Turn::wait().map(|_turn| settings())?);
    kills::main("kill_lab", begin, |before, rng| {
        let (cause, release) = *rng.choice(&possible).ok_or("no cause is possible here")?;
        kill_once(cause, release, Duration::from_millis(rng.u64(..LATEST_MS)), before)
    })
}

fn kill_once(cause: &Cause, release: Release, after: Duration, before: &[String]) -> Outcome<Kill> {
    let folder = tempfile::tempdir()?;
    let words = ["lab", "run", cause.id, "--engine", release.id, "--window", "2s", "--pairs", "3"];
    let mut lab = start(folder.path(), &words)?;
    // While another has the turn there is nothing to be killed in the middle of.
    while !has_begun(lab.id()) && lab.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(after);
    let there = things();
    lab.kill()?;
    let killed = Instant::now();
    lab.wait()?;
    let kill = |left| Kill {
        what: format!("{} on {} killed after {after:.1?}", cause.id, release.id),
        there: there.len(),
        left,
    };
    // What was its own by name goes first: what stays may have the turn and never give it back.
    let own = || things().into_iter().filter(|thing| there.contains(thing)).collect();
    let took = match gone(killed, WITHIN, own) {
        Ok(took) => took,
        left => return Ok(kill(left)),
    };
    // Then nothing at all may be left, and nobody else's lab is looked at.
    let _turn = Turn::wait()?;
    let all = || {
        let changed = settings().into_iter().filter(|setting| !before.contains(setting));
        things().into_iter().chain(changed).collect()
    };
    Ok(kill(gone(Instant::now(), WITHIN, all).map(|_| took)))
}

/// Whether it has the turn: then it has started the first of its shells.
fn has_begun(lab: u32) -> bool {
    let children = fs::read_to_string(format!("/proc/{lab}/task/{lab}/children"));
    children.is_ok_and(|children| !children.trim().is_empty())
}
