//! Where one process sits in the control groups, what limits it there, and in which container
//! and pod it runs.

mod cpu;
mod identity;
mod io;
mod limits;
mod memory;
mod memory_of_all;
mod pressure;
mod runtime_state;

pub use memory_of_all::memory_of_all;

use crate::{Host, process};
use std::collections::BTreeMap;
use untax_core::Reading;
use untax_core::database::{Cgroup, Container, Pod};
use untax_core::host::{CgroupLayout, CgroupMount};

/// The control groups of a process, with the limits up to the root.
pub fn of_process(host: &Host, layout: &CgroupLayout, pid: u32) -> Reading<Cgroup> {
    let path = format!("/proc/{pid}/cgroup");
    host.text(&path).parse(&path, |text| parse_paths(text)).map(|paths| Cgroup {
        hugetlb: limits::hugetlb(host, layout, &paths),
        memory_limit_bytes: limits::memory(host, layout, &paths),
        cpu: cpu::limits(host, layout, &paths),
        io: io::limits(host, layout, &paths),
        memory: memory::limited_groups(host, layout, &paths),
        pressure: pressure::nearest_stalls(host, layout, &paths),
        paths,
    })
}

/// The control group of a process for processor time, as `/proc/PID/cgroup` gives it.
pub fn path_of(host: &Host, pid: u32) -> Reading<String> {
    let path = format!("/proc/{pid}/cgroup");
    host.text(&path).parse(&path, |text| {
        let mut paths = parse_paths(text)?;
        paths.remove("cpu").or_else(|| paths.remove("unified"))
    })
}

/// The container that a process runs in: as the paths of its groups say, otherwise as runc or
/// crun say, which may run a container in any group; at least that there is one, when the process
/// has a pid namespace of its own.
pub fn container_of(host: &Host, pid: u32, cgroup: &Cgroup) -> Option<Container> {
    if let Some(container) = cgroup.paths.values().find_map(|path| identity::container(path)) {
        return Some(runtime_state::with_runtime(host, container));
    }
    runtime_state::by_namespace(host, pid).or_else(|| {
        let status = process::status(host, pid).into_value()?;
        let unknown = || "unknown".to_owned();
        (status.namespace_pids.len() > 1).then(|| Container { id: unknown(), runtime: unknown() })
    })
}

/// The Kubernetes pod that a process runs in, from the paths of its groups.
pub fn pod_of(cgroup: &Cgroup) -> Option<Pod> {
    cgroup.paths.values().find_map(|path| identity::pod(path))
}

/// Parses `/proc/PID/cgroup`: `hierarchy:controllers:path`, the path with any character but a
/// newline. The v2 hierarchy has no controllers and is called `unified`.
fn parse_paths(text: &str) -> Option<BTreeMap<String, String>> {
    let mut paths = BTreeMap::new();
    for line in text.lines() {
        let (hierarchy, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        hierarchy.parse::<u32>().ok()?;
        if !path.starts_with('/') {
            return None;
        }
        let controllers = if controllers.is_empty() { "unified" } else { controllers };
        for controller in controllers.split(',') {
            paths.insert(controller.to_owned(), path.to_owned());
        }
    }
    (!paths.is_empty()).then_some(paths)
}

/// A control group: its path below the mount, and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    path: String,
    directory: String,
}

/// The group at `path` and those above it, nearest first, as far as the mount shows them.
///
/// Paths are as seen from this process's cgroup namespace: one that climbs is outside of it, and
/// visible only through a mount whose root climbs as far. `None` if it is not visible.
fn lineage(mount: &CgroupMount, path: &str) -> Option<Vec<Group>> {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let below = match mount.root.as_str() {
        "/" => path,
        root => path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
    };
    let below = below.trim_end_matches('/');
    if below.split('/').any(|part| part == "..") {
        return None;
    }
    let up = std::iter::successors(Some(below), |path| path.rfind('/').map(|end| &path[..end]));
    let group = |path: &str| Group {
        path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        directory: format!("{}{path}", mount.path.trim_end_matches('/')),
    };
    Some(up.map(group).collect())
}

/// The groups of process 7 on a host with these mounts, this `/proc/7/cgroup` and these files below
/// `/sys/fs/cgroup`.
#[cfg(test)]
fn of_files(mounts: &str, group: &str, files: &[(&str, &str)]) -> Cgroup {
    let record = crate::Record::default()
        .with_file("/proc/self/mountinfo", mounts)
        .with_file("/proc/7/cgroup", group);
    let with = |record: crate::Record, (path, text): &(&str, &str)| {
        record.with_file(&format!("/sys/fs/cgroup/{path}"), text)
    };
    let host = Host::from_record(files.iter().fold(record, with));
    let layout = crate::facts::read_all(&host).cgroup.into_value().unwrap();
    of_process(&host, &layout, 7).into_value().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hold_any_character() {
        let paths = parse_paths(
            "12:name=systemd:/system.slice/a:b\n5:cpu,cpuacct:/docker/x y\n\
             0::/user.slice/gone (deleted)\n",
        )
        .unwrap();
        assert_eq!(paths["name=systemd"], "/system.slice/a:b");
        assert_eq!(paths["cpu"], "/docker/x y");
        assert_eq!(paths["cpuacct"], "/docker/x y");
        assert_eq!(paths["unified"], "/user.slice/gone (deleted)");
    }

    #[test]
    fn garbage_is_refused_as_a_whole() {
        for text in ["", "\n", "0:", "0::", "x::/a", "0::a", "0::/a\ngarbage"] {
            assert_eq!(parse_paths(text), None, "{text:?}");
        }
    }

    fn seen(root: &str, path: &str) -> Option<Vec<(String, String)>> {
        let mount = CgroupMount {
            controllers: vec!["unified".to_owned()],
            path: "/sys/fs/cgroup".to_owned(),
            root: root.to_owned(),
        };
        let groups = lineage(&mount, path)?;
        Some(groups.into_iter().map(|group| (group.path, group.directory)).collect())
    }

    fn expected(groups: &[(&str, &str)]) -> Vec<(String, String)> {
        groups.iter().map(|(path, dir)| ((*path).to_owned(), (*dir).to_owned())).collect()
    }

    #[test]
    fn a_group_and_all_above_it() {
        let groups =
            [("/a/b", "/sys/fs/cgroup/a/b"), ("/a", "/sys/fs/cgroup/a"), ("/", "/sys/fs/cgroup")];
        assert_eq!(seen("/", "/a/b"), Some(expected(&groups)));
        assert_eq!(seen("/", "/a/b (deleted)"), Some(expected(&groups)));
        assert_eq!(seen("/", "/"), Some(expected(&groups[2..])));
    }

    #[test]
    fn a_container_sees_its_own_part() {
        let inside = [("/pg", "/sys/fs/cgroup/pg"), ("/", "/sys/fs/cgroup")];
        assert_eq!(seen("/docker/abc", "/docker/abc/pg"), Some(expected(&inside)));
        assert_eq!(seen("/docker/abc", "/docker/abc"), Some(expected(&inside[1..])));
        assert_eq!(seen("/docker/abc", "/docker/abcd"), None);
        assert_eq!(seen("/docker/abc", "/"), None);
    }

    #[test]
    fn a_namespace_hides_what_is_above() {
        assert_eq!(seen("/", "/../other"), None);
        assert_eq!(seen("/..", "/../other"), seen("/", "/other"));
        assert_eq!(seen("/..", "/../../other"), None);
        assert_eq!(seen("/..", "/"), None);
        assert_eq!(seen("/", "/a/../../etc"), None);
    }
}
