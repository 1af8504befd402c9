//! SIGKILL at random moments of `untax bench runtime`: soon after, no container, control group, mount,
//! network, process, file or shared memory of the bench is left.
//!
//! `cargo test -p untax --test kill_bench -- TIMES [SEED]` as root, with no lab running.
//! Without TIMES it says how to run it and does nothing.

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
use std::process::ExitCode;
use std::time::{Duration, Instant};
use untax_scenes::Turn;

/// The benches, with work that starts servers, containers and networks soon.
const BENCHES: [&[&str]; 2] = [
    &["runtime", "--workloads", "redis-get", "--trial", "200ms"],
    &["runtime", "--workloads", "postgres-connect,sqlite-insert", "--trial", "200ms"],
];

/// Trying the runtimes, filling a server and a block of trials take about as long as the latest kill.
const LATEST_MS: u64 = 25_000;

fn main() -> ExitCode {
    // No lab meanwhile: what it starts bears the same names.
    let begin = || Ok((Turn::wait()?, settings()));
    kills::main("kill_bench", begin, |(_turn, before), rng| {
        let bench = *rng.choice(&BENCHES).ok_or("no bench")?;
        kill_once(bench, Duration::from_millis(rng.u64(1000..LATEST_MS)), before)
    })
}

fn kill_once(bench: &[&str], after: Duration, before: &[String]) -> Outcome<Kill> {
    let folder = tempfile::tempdir()?;
    let words = [&["bench"], bench, &["--beside", "--budget", "10m"]].concat();
    let mut program = start(folder.path(), &words)?;
    std::thread::sleep(after);
    let there = things().len();
    if let Some(status) = program.try_wait()? {
        return Err(format!("bench {} ended by itself: {status}", bench.join(" ")).into());
    }
    program.kill()?;
    let killed = Instant::now();
    program.wait()?;
    let all = || {
        let changed = settings().into_iter().filter(|setting| !before.contains(setting));
        things().into_iter().chain(changed).collect()
    };
    let what = format!("{} killed after {after:.1?}", bench.join(" "));
    Ok(Kill { what, there, left: gone(killed, WITHIN, all) })
}
