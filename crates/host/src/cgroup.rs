//! Where one process sits in the control groups, what limits it there, and in which container
//! and pod it runs.

mod cpu;
pub mod cpus;
mod group;
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
use untax_core::host::CgroupLayout;

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
        oom_kills: memory::oom_kills(host, layout, &paths),
        paths,
    })
}

/// The groups of a process whose weight for CPU time is not the default, nearest first, with the weight.
pub fn cpu_weights(host: &Host, layout: &CgroupLayout, pid: u32) -> Reading<Vec<(String, u64)>> {
    let path = format!("/proc/{pid}/cgroup");
    let paths = host.text(&path).parse(&path, |text| parse_paths(text));
    paths.and_then(|paths| cpu::weights(host, layout, &paths))
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
}
