//! For how long the tasks of a process's control group were held up.

use super::group::{Group, lineage};
use crate::{Host, pressure};
use std::collections::BTreeMap;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::CgroupLayout;
use untax_core::pressure::GroupStalls;

/// The stalls of the nearest group that counts any: version 2 can be told not to, group by group.
pub(super) fn nearest_stalls(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<GroupStalls> {
    let unified = layout.mounts.iter().find(|mount| mount.controllers == ["unified"]);
    let Some((mount, path)) = unified.zip(paths.get("unified")) else {
        return Absent("control groups of version 1 do not count it".to_owned());
    };
    let Some(groups) = lineage(mount, path) else {
        return Absent(format!("its group {path} is not to be seen below {}", mount.path));
    };
    let of = |group: Group| {
        let stalls = pressure::read(host, |what| format!("{}/{what}.pressure", group.directory));
        Some(GroupStalls { cgroup: group.path, stalls: stalls.into_value()? })
    };
    let mut groups = groups.into_iter().filter(|group| !is_machine(host, group));
    groups.find_map(of).map_or_else(
        || Absent(format!("no group of {path} counts it, but for the machine's own")),
        Present,
    )
}

/// Whether it is the root of all groups, which is the machine, and not that of a namespace: only the
/// former has no type.
fn is_machine(host: &Host, group: &Group) -> bool {
    group.path == "/" && !host.exists(&format!("{}/cgroup.type", group.directory))
}

#[cfg(test)]
mod tests {
    use super::super::of_files;
    use super::*;
    use untax_core::Seconds;

    const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "35 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    fn found(mounts: &str, group: &str, files: &[&str]) -> Reading<(String, Seconds)> {
        // Each has as many seconds as its place among them.
        let texts: Vec<(&str, String)> =
            (1..).zip(files).map(|(n, file)| (*file, format!("some total={n}000000\n"))).collect();
        let files: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (*file, &**text)).collect();
        of_files(mounts, group, &files)
            .pressure
            .and_then(|found| found.stalls.cpu.map(|cpu| (found.cgroup, cpu.some_s)))
    }

    #[test]
    fn the_nearest_group_that_counts_it() {
        let files = ["cpu.pressure", "a/cpu.pressure", "a/b/cpu.pressure"];
        let path = |path: &str, s| Present((path.to_owned(), Seconds(s)));
        assert_eq!(found(V2, "0::/a/b\n", &files), path("/a/b", 3.0));
        assert_eq!(found(V2, "0::/a/b\n", &files[..2]), path("/a", 2.0));
        let hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let hybrid =
            found(&format!("{V1}{hybrid}"), "4:memory:/m\n0::/u\n", &["unified/u/cpu.pressure"]);
        assert_eq!(hybrid, path("/u", 1.0));
    }

    #[test]
    fn the_root_of_all_groups_is_the_machine() {
        assert!(matches!(found(V2, "0::/a\n", &["cpu.pressure"]), Absent(_)));
        let namespace = found(V2, "0::/\n", &["cpu.pressure", "cgroup.type"]);
        assert_eq!(namespace, Present(("/".to_owned(), Seconds(1.0))));
    }

    #[test]
    fn where_no_group_counts_it_the_reason_is_said() {
        let why = |mounts, group| found(mounts, group, &["a/memory.max"]).why().unwrap();
        assert!(why(V1, "4:memory:/a\n").contains("version 1"));
        assert!(why(V2, "0::/a\n").contains("no group of /a"));
        assert!(why(V2, "0::/../a\n").contains("not to be seen"));
    }
}
