//! SIGKILL at random moments of `untax bench storage`: soon after, no mount, loop device, control group,
//! process or file of it is left.
//!
//! `cargo test -p untax --test kill_storage -- TIMES [SEED]` as root. Without TIMES it says how to run it and
//! does nothing: it mounts filesystems.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it is run by hand, says how it went, and looks at the machine by other ways than the \
              code that it tests"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use untax_scenes::Turn;

/// How soon everything must be gone: a server gets a minute to end in good order.
const WITHIN: Duration = Duration::from_secs(90);

/// Making the volumes and a first block take about as long as the latest kill.
const LATEST_MS: u64 = 15_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let Some(times) = numbers.first() else {
        println!("not run: cargo test -p untax --test kill_storage -- TIMES");
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
    let _turn = Turn::wait()?;
    let (mut failed, mut caught) = (0, 0);
    for time in 1..=times {
        let after = Duration::from_millis(rng.u64(..LATEST_MS));
        let (there, left) = kill_once(after)?;
        caught += u32::from(there > 0);
        failed += u32::from(left.is_err());
        let verdict = match left {
            Ok(took) => format!("gone after {:.1} s", took.as_secs_f64()),
            Err(left) => format!("LEFT: {}", left.join(", ")),
        };
        println!("{time:>3}: killed after {after:.1?} with {there} things: {verdict}");
    }
    println!("{times} kills, {caught} with something there, {failed} that left something");
    Ok(failed == 0 && (caught > 0 || times < 3))
}

/// Kills one run; gives how many things there were, and when all were gone or what was left.
fn kill_once(after: Duration) -> Outcome<(usize, Result<Duration, Vec<String>>)> {
    let folder = tempfile::tempdir()?;
    // Volumes whose files take long come first, and servers and neighbours soon after.
    let mut bench = Command::new(env!("CARGO_BIN_EXE_untax"))
        .arg("--state-dir")
        .arg(folder.path())
        .args(["bench", "storage", "--beside", "--size", "64", "--trial", "200ms"])
        .args(["--workloads", "flood-limited,log-limited,postgres,checkpoint"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(after);
    let there = things(bench.id()).len();
    bench.kill()?;
    let killed = Instant::now();
    bench.wait()?;
    loop {
        let left = things(bench.id());
        if left.is_empty() {
            return Ok((there, Ok(killed.elapsed())));
        }
        if killed.elapsed() > WITHIN {
            return Ok((there, Err(left)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_ours(text: &str) -> bool {
    text.contains("/untax-bench.") || text.contains("/untax-lab.")
}

/// Everything that bears the name of the bench, or of scenes.
fn things(bench: u32) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut things: Vec<String> =
        mounts.lines().filter(|line| is_ours(line)).map(str::to_owned).collect();
    for group in mounts.lines().filter(|line| line.contains(" cgroup")) {
        let path = Path::new(group.split(' ').nth(1).unwrap_or_default());
        let name = format!("/untax-lab-{bench}-");
        things.extend(entries(path).filter(|path| path.contains(&name)));
    }
    things.extend(entries(&std::env::temp_dir()).filter(|path| is_ours(path)));
    let devices = entries(Path::new("/sys/class/block"));
    let backing = devices.map(|device| PathBuf::from(device).join("loop/backing_file"));
    let backing = backing.filter_map(|file| fs::read_to_string(file).ok());
    things.extend(backing.filter(|file| is_ours(file)));
    things.extend(entries(Path::new("/proc")).filter_map(|process| {
        let line = fs::read(Path::new(&process).join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(" __storage ") || is_ours(&line)).then(|| format!("{process}: {line}"))
    }));
    things
}

fn entries(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string())
}
