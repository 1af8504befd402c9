//! SIGKILL at random moments of `untax bench storage` and of `untax bench locality`, in turn: soon after, no mount,
//! loop device, control group, process or file of them is left.
//!
//! `cargo test -p untax --test kill_storage -- TIMES [SEED]` as root. Without TIMES it says how to run it and
//! does nothing: it mounts filesystems.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it is run by hand, says how it went, and looks at the machine by other ways than the \
              code that it tests"
)]

mod kills;

use kills::{Kill, Outcome, gone, start};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use untax_scenes::Turn;

/// How soon everything must be gone: a server gets a minute to end in good order.
const WITHIN: Duration = Duration::from_secs(90);

/// The benches, and the latest kill of each: making the volumes and a first block take about as long, and making
/// the disks, a server with its tables and a first level.
const BENCHES: [(&[&str], u64); 2] = [
    // Volumes whose files take long come first, and servers and neighbours soon after.
    (
        &[
            "storage",
            "--size",
            "64",
            "--trial",
            "200ms",
            "--workloads",
            "flood-limited,log-limited,postgres,checkpoint",
        ],
        15_000,
    ),
    (&["locality", "--quick"], 45_000),
];

fn main() -> ExitCode {
    let benches = RefCell::new(BENCHES.iter().cycle());
    kills::main(
        "kill_storage",
        || Ok(Turn::wait()?),
        |_turn, rng| {
            let (words, latest_ms) = benches.borrow_mut().next().ok_or("no bench")?;
            kill_once(words, Duration::from_millis(rng.u64(..*latest_ms)))
        },
    )
}

fn kill_once(words: &[&str], after: Duration) -> Outcome<Kill> {
    let folder = tempfile::tempdir()?;
    let mut bench = start(folder.path(), &[&["bench"], words, &["--beside"]].concat())?;
    std::thread::sleep(after);
    let there = things(bench.id()).len();
    bench.kill()?;
    let killed = Instant::now();
    bench.wait()?;
    let left = gone(killed, WITHIN, || things(bench.id()));
    Ok(Kill { what: format!("{} killed after {after:.1?}", words[0]), there, left })
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
