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

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use untax_lab::{CAUSES, Cause, Dose};
use untax_scenes::{Engine, Release, Turn};

/// How soon everything must be gone. A server gets a minute to end in good order.
const WITHIN: Duration = Duration::from_secs(90);

/// Starting, filling and both checks take about as long as the latest kill.
const LATEST_MS: u64 = 30_000;

/// Settings of the whole machine that causes change.
const SETTINGS: [&str; 11] = [
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device",
    "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device",
    "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/net/netfilter/nf_conntrack_max",
    "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
];

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

/// How long after a moment nothing is left any more; what is, when that takes too long.
fn gone(since: Instant, left: impl Fn() -> Vec<String>) -> Result<Duration, Vec<String>> {
    loop {
        let left = left();
        if left.is_empty() {
            return Ok(since.elapsed());
        }
        if since.elapsed() > WITHIN {
            return Err(left);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether it has the turn: then it has started the first of its shells.
fn has_begun(lab: u32) -> bool {
    let children = fs::read_to_string(format!("/proc/{lab}/task/{lab}/children"));
    children.is_ok_and(|children| !children.trim().is_empty())
}

/// The settings with their values; those that this machine does not have are left out. And the shared
/// memory that there is, of System V and of POSIX.
fn settings() -> Vec<String> {
    let text = |path: &&str| Some(format!("{path} = {}", fs::read_to_string(path).ok()?.trim()));
    let mut all: Vec<String> = SETTINGS.iter().filter_map(text).collect();
    let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let id = |line: &str| Some(format!("shared memory {}", line.split_whitespace().nth(1)?));
    all.extend(segments.lines().skip(1).filter_map(id));
    let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    all.extend(files.map(|file| file.path().display().to_string()));
    all
}

/// Everything that bears the lab's name.
fn things() -> Vec<String> {
    let mut things = Vec::new();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    things.extend(mounts.lines().filter(|line| line.contains("untax-lab")).map(str::to_owned));
    for mount in mounts.lines().filter(|line| line.contains(" cgroup")) {
        let path = mount.split(' ').nth(1).unwrap_or_default();
        things.extend(named(Path::new(path)));
    }
    things.extend(named(&std::env::temp_dir()));
    things.extend(named(Path::new("/run/netns")));
    let receipts = fs::read_dir("/run/untax").into_iter().flatten().flatten();
    things.extend(receipts.map(|receipt| receipt.path().display().to_string()));
    let devices = fs::read_dir("/sys/class/block").into_iter().flatten().flatten();
    let backing = devices.map(|device| device.path().join("loop/backing_file"));
    let backing = backing.filter_map(|file| fs::read_to_string(file).ok());
    things.extend(backing.filter(|file| file.contains("untax-lab")));
    things.extend(processes().filter_map(|process| {
        let line = fs::read(process.join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        // By number too: another lab's shells have the same words.
        let ours = line.split('\0').any(is_ours);
        ours.then(|| format!("{}: {}", process.display(), line.replace('\0', " ")))
    }));
    things.extend(at_home());
    things
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Processes whose working directory is the lab's, removed or not: what it started may go by any
/// name, and has the turn for as long as it runs.
fn at_home() -> Vec<String> {
    let homes = processes().filter_map(|process| {
        let home = fs::read_link(process.join("cwd")).ok()?;
        let name = fs::read_to_string(process.join("comm")).ok()?;
        let home = home.display().to_string();
        Some(format!(
            "{}: {} in {}",
            process.display(),
            name.trim(),
            home.trim_end_matches(" (deleted)")
        ))
    });
    homes.filter(|home| home.contains("/untax-lab.")).collect()
}

/// Whether an argument is of a process of the lab: of one of its shells, or with a path of its
/// directories and groups. Not what merely lies in a directory of such a name.
fn is_ours(argument: &str) -> bool {
    argument == "untax-lab"
        || argument == "untax-lab-neighbour"
        || argument == "untax-lab-awake"
        || argument.contains("/untax-lab.")
        || argument.contains("/untax-lab-") && argument.ends_with("-server")
        || argument.contains("/untax-lab-") && argument.ends_with("-neighbour")
}

fn named(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path().display().to_string());
    paths.filter(|path| path.contains("/untax-lab")).collect()
}
