//! What scenes leave behind: control groups, mounts, loop devices, networks, processes, files, shared memory,
//! settings. Looked for by other ways than those of the code that must take them away.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How soon everything must be gone. A server gets a minute to end in good order.
pub const WITHIN: Duration = Duration::from_secs(90);

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

/// The settings with their values; those that this machine does not have are left out. And the shared
/// memory that there is, of System V and of POSIX.
pub fn settings() -> Vec<String> {
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
pub fn things() -> Vec<String> {
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
