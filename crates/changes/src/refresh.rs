//! Commands that must run after a value changed, such as `update-grub`.
//!
//! `systemctl daemon-reload` has systemd write limits of its units again, and some versions write those of
//! running containers too, which it has no business with: a CPU quota becomes -1
//! (systemd/systemd-stable#301), cpusets are written again as far as they reach (systemd/systemd#40438). So
//! every group's limits are compared before and after, and put back.

use crate::tree::Tree;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;
use untax_core::receipt::Disturbance;

/// Where control groups are mounted on every distribution with systemd.
const GROUPS: &str = "/sys/fs/cgroup";

/// The limits of a group, in either version.
const LIMITS: [&str; 19] = [
    "cpu.cfs_period_us",
    "cpu.cfs_quota_us",
    "cpu.max",
    "cpu.shares",
    "cpu.weight",
    "cpuset.cpus",
    "cpuset.mems",
    "blkio.weight",
    "io.max",
    "io.weight",
    "memory.high",
    "memory.limit_in_bytes",
    "memory.low",
    "memory.max",
    "memory.min",
    "memory.soft_limit_in_bytes",
    "memory.swap.max",
    "pids.max",
    "memory.swap.high",
];

/// How the names of limits on huge pages end, which begin with `hugetlb.` and a size.
const HUGETLB: [&str; 2] = [".max", "limit_in_bytes"];

/// How long systemd may go on writing after the command ended: it does so from its event loop, as soon as it
/// has read its units.
const SETTLING: Duration = Duration::from_secs(1);

/// A limit may wait for that of a group above or below it.
const PASSES: usize = 3;

/// Runs a command. `own` are the files that steps are about: they are looked after one by one.
pub fn run(tree: &Tree, command: &[String], own: &[String]) -> (io::Result<()>, Vec<Disturbance>) {
    if !matches!(command, [program, verb] if program == "systemctl" && verb == "daemon-reload") {
        return (tree.run(command).map(|_| ()), Vec::new());
    }
    // Where no systemd runs there is nothing that would have to read its units again before it starts.
    if tree.is_live() && !tree.place("/run/systemd/system").exists() {
        return (Ok(()), Vec::new());
    }
    let before = limits(tree);
    let ran = tree.run(command).map(|_| ());
    if tree.is_live() {
        std::thread::sleep(SETTLING);
    }
    let mut changed = differences(&before, &limits(tree), &command.join(" "));
    changed.retain(|one| !own.contains(&one.file));
    put_back(tree, &mut changed);
    (ran, changed)
}

/// Every limit of every group, by its file: those of a group stand before those of the groups in it.
fn limits(tree: &Tree) -> BTreeMap<String, String> {
    let mut limits = BTreeMap::new();
    let mut folders = vec![GROUPS.to_owned()];
    while let Some(folder) = folders.pop() {
        for name in tree.names(&folder) {
            let path = format!("{folder}/{name}");
            let is_limit = LIMITS.contains(&name.as_str())
                || (name.starts_with("hugetlb.")
                    && (HUGETLB.iter().any(|end| name.ends_with(end))));
            if is_limit {
                limits.extend(tree.text(&path).ok().map(|text| (path, text)));
            } else if is_group(&tree.place(&path)) {
                folders.push(path);
            }
        }
    }
    limits
}

/// Version 1 has links beside the directories of controllers that are mounted together.
fn is_group(place: &Path) -> bool {
    place.symlink_metadata().is_ok_and(|entry| entry.is_dir())
}

/// The limits whose value changed. Groups that came or went in between do not count.
fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    command: &str,
) -> Vec<Disturbance> {
    let changed = before.iter().filter_map(|(file, was)| {
        let became = after.get(file).filter(|became| *became != was)?;
        Some(Disturbance {
            command: command.to_owned(),
            file: file.clone(),
            was: was.clone(),
            became: became.clone(),
            left: Some("not tried".to_owned()),
        })
    });
    changed.collect()
}

fn put_back(tree: &Tree, changed: &mut [Disturbance]) {
    for _ in 0..PASSES {
        for one in changed.iter_mut().filter(|one| one.left.is_some()) {
            one.left = put_one_back(tree, one).err().map(|error| error.to_string());
        }
    }
}

fn put_one_back(tree: &Tree, one: &Disturbance) -> io::Result<()> {
    let name = one.file.rsplit('/').next().unwrap_or_default();
    // These have a line for each device; a device without one has no limit.
    if name == "io.max" {
        for device in one.became.lines().filter_map(|line| line.split(' ').next()) {
            tree.write(&one.file, &format!("{device} rbps=max wbps=max riops=max wiops=max"))?;
        }
    }
    if tree.is_live() && matches!(name, "io.max" | "io.weight") {
        return one.was.lines().try_for_each(|line| tree.write(&one.file, line));
    }
    tree.write(&one.file, &one.was)?;
    match tree.text(&one.file)? {
        now if now == one.was => Ok(()),
        now => Err(io::Error::other(format!("it is \"{now}\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A host with these limits, whose systemctl does so to them.
    fn host(files: &[(&str, &str)], reload: &str) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        for (file, text) in files {
            tree.replace(&format!("{GROUPS}/{file}"), text).unwrap();
        }
        let script = format!("#!/bin/sh\ncd \"$UNTAX_ROOT{GROUPS}\" || exit 1\n{reload}\n");
        tree.replace("/usr/sbin/systemctl", &script).unwrap();
        let systemctl = tree.place("/usr/sbin/systemctl");
        fs::set_permissions(systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        (root, tree)
    }

    fn reload() -> Vec<String> {
        ["systemctl", "daemon-reload"].map(str::to_owned).to_vec()
    }

    const DOCKER: [(&str, &str); 3] = [
        ("cpu/docker/a/cpu.cfs_quota_us", "150000\n"),
        ("cpuset/docker/a/cpuset.cpus", "2-3\n"),
        ("cpu/docker/b/cpu.cfs_quota_us", "-1\n"),
    ];

    #[test]
    fn limits_of_others_are_put_back_and_told() {
        let reset = "echo -1 >cpu/docker/a/cpu.cfs_quota_us; echo 0-7 >cpuset/docker/a/cpuset.cpus";
        let (_root, tree) = host(&DOCKER, reset);
        let (ran, told) = run(&tree, &reload(), &[]);
        ran.unwrap();
        let files: Vec<_> = told.iter().map(|d| (d.was.as_str(), d.became.as_str())).collect();
        assert_eq!(files, [("150000", "-1"), ("2-3", "0-7")]);
        assert!(told.iter().all(|one| one.left.is_none()), "{told:?}");
        assert!(told[0].to_string().ends_with("from \"150000\" to \"-1\": put back"));
        for (file, text) in DOCKER {
            assert_eq!(tree.text(&format!("{GROUPS}/{file}")).unwrap(), text.trim());
        }
    }

    #[test]
    fn a_command_that_fails_may_have_changed_them_all_the_same() {
        let (_root, tree) = host(&DOCKER, "echo -1 >cpu/docker/a/cpu.cfs_quota_us; exit 1");
        let (ran, told) = run(&tree, &reload(), &[]);
        assert!(ran.is_err() && told.len() == 1, "{told:?}");
    }

    #[test]
    fn what_a_step_is_about_and_what_ended_meanwhile_is_nobodys_concern() {
        let change = "echo 300000 >cpu/docker/a/cpu.cfs_quota_us; rm -r cpu/docker/b";
        let (_root, tree) = host(&DOCKER, change);
        let own = format!("{GROUPS}/{}", DOCKER[0].0);
        let (_, told) = run(&tree, &reload(), &[own]);
        assert_eq!(told, []);
    }

    #[test]
    fn other_commands_are_not_watched() {
        let (_root, tree) = host(&DOCKER, "echo -1 >cpu/docker/a/cpu.cfs_quota_us");
        let (ran, told) = run(&tree, &["systemctl", "status"].map(str::to_owned), &[]);
        assert!(ran.is_ok() && told.is_empty());
    }
}
