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

mod left;

use left::{gone, settings, things};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use untax_scenes::Turn;

/// The benches, with work that starts servers, containers and networks soon.
const BENCHES: [&[&str]; 2] = [
    &["runtime", "--workloads", "redis-get", "--trial", "200ms"],
    &["runtime", "--workloads", "postgres-connect,sqlite-insert", "--trial", "200ms"],
];

/// Trying the runtimes, filling a server and a block of trials take about as long as the latest kill.
const LATEST_MS: u64 = 25_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let Some(times) = numbers.first() else {
        println!("not run: cargo test -p untax --test kill_bench -- TIMES");
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
    // No lab meanwhile: what it starts bears the same names.
    let _turn = Turn::wait()?;
    let before = settings();
    let (mut failed, mut caught) = (0, 0);
    for time in 1..=times {
        let bench = *rng.choice(&BENCHES).ok_or("no bench")?;
        let after = Duration::from_millis(rng.u64(1000..LATEST_MS));
        let (there, left) = kill_once(bench, after, &before)?;
        caught += u32::from(there > 0);
        failed += u32::from(left.is_err());
        let verdict = match left {
            Ok(took) => format!("gone after {:.1} s", took.as_secs_f64()),
            Err(left) => format!("LEFT: {}", left.join(", ")),
        };
        println!(
            "{time:>3}: {} killed after {after:.1?} with {there} things: {verdict}",
            bench.join(" ")
        );
    }
    println!("{times} kills, {caught} with something there, {failed} that left something");
    Ok(failed == 0 && (caught > 0 || times < 5))
}

/// Kills one bench; gives how many things there were, and when all were gone or what was left.
fn kill_once(
    bench: &[&str],
    after: Duration,
    before: &[String],
) -> Outcome<(usize, Result<Duration, Vec<String>>)> {
    let folder = tempfile::tempdir()?;
    let mut program = Command::new(env!("CARGO_BIN_EXE_untax"))
        .arg("--state-dir")
        .arg(folder.path())
        .arg("bench")
        .args(bench)
        .args(["--beside", "--budget", "10m"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(after);
    let there = things();
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
    Ok((there.len(), gone(killed, all)))
}
