//! Memory of the groups that a process is counted in, from its own up to the root.

use super::group::Group;
use super::limits::{Files, groups, limit};
use crate::Host;
use std::collections::BTreeMap;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::database::MemoryGroup;
use untax_core::host::CgroupLayout;

/// Every group that limits memory, nearest first; none when no group does. One whose limit cannot be
/// read may limit it.
pub(super) fn limited_groups(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<Vec<MemoryGroup>> {
    groups(layout, paths, "memory").map(|(groups, files)| {
        let groups = groups.iter().map(|group| read(host, group, files));
        let is_limit = |limit: &Reading<Bytes>| !matches!(limit, Absent(_));
        groups.filter(|g| is_limit(&g.max_bytes) || is_limit(&g.high_bytes)).collect()
    })
}

fn read(host: &Host, group: &Group, files: &Files) -> MemoryGroup {
    let file = |name: &str| format!("{}/memory.{name}", group.directory);
    let stat = host.text(&file("stat"));
    let field = |names: [&str; 2]| {
        stat.as_ref().and_then(|text| {
            let found = names.iter().find_map(|name| number_after(text, name));
            found.map_or_else(|| Failed(format!("no {} in {}", names[0], file("stat"))), Present)
        })
    };
    // What v1 counts apart for the group itself and for all below it, v2 counts together.
    let names = |v2, v1| if files.v2 { [v2, v2] } else { [v1, v2] };
    let kept_out = host.text(&file(if files.v2 { "events" } else { "failcnt" }));
    MemoryGroup {
        cgroup: group.path.clone(),
        max_bytes: limit(host, &file(files.max)),
        high_bytes: limit(host, &file("high")),
        usage_bytes: limit(host, &file(files.usage)),
        file_bytes: field(names("file", "total_cache")).map(|cache| {
            let stat = stat.value().filter(|_| files.v2);
            let slab = stat.and_then(|text| number_after(text, "slab_reclaimable"));
            Bytes(cache.saturating_add(slab.unwrap_or(0)))
        }),
        shmem_bytes: field(names("shmem", "total_shmem")).map(Bytes),
        at_limit: kept_out.and_then(|text| {
            let count =
                if files.v2 { number_after(&text, "max") } else { text.trim().parse().ok() };
            count.map_or_else(|| Failed("memory events have an unexpected form".into()), Present)
        }),
    }
}

/// How many processes of its own group the kernel killed so far. Version 2 counts with a group all below
/// it, version 1 each for itself: in either, the nearest group tells of the fewest others.
pub(super) fn oom_kills(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<u64> {
    groups(layout, paths, "memory").and_then(|(groups, files)| {
        let Some(own) = groups.first().filter(|group| group.path != "/") else {
            return Absent("it is in the root group, with all other processes".to_owned());
        };
        let name = if files.v2 { "events" } else { "oom_control" };
        host.text(&format!("{}/memory.{name}", own.directory)).and_then(|text| {
            number_after(&text, "oom_kill").map_or_else(
                || Absent("kernels before 4.13 do not count the processes they kill".to_owned()),
                Present,
            )
        })
    })
}

/// The number on the line that begins with this word.
pub(super) fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::super::of_files;
    use super::*;

    fn groups_of(mounts: &str, group: &str, files: &[(&str, &str)]) -> Vec<MemoryGroup> {
        of_files(mounts, group, files).memory.into_value().unwrap()
    }

    #[test]
    fn v2_counts_a_group_and_all_below_it() {
        let groups = groups_of(
            "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/db\n",
            &[
                ("db/memory.max", "1000\n"),
                ("db/memory.high", "max\n"),
                ("db/memory.current", "900\n"),
                ("db/memory.stat", "anon 500\nfile 300\nshmem 100\nfile_mapped 7\n"),
                ("db/memory.events", "low 0\nhigh 3\nmax 12\noom 0\n"),
            ],
        );
        let [group] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!(group.max_bytes, Present(Bytes(1000)));
        assert!(!group.high_bytes.is_present());
        assert_eq!((&group.file_bytes, &group.at_limit), (&Present(Bytes(300)), &Present(12)));
        assert_eq!(group.unreclaimable(), Some(Bytes(700)));
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_not_unlimited() {
        let groups = groups_of(
            "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/a/b/c\n",
            &[
                ("a/b/c/memory.max", "max\n"),
                ("a/b/c/memory.high", "max\n"),
                ("a/b/memory.max", "x\n"),
            ],
        );
        let [group] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!(group.cgroup, "/a/b");
        assert!(matches!(group.max_bytes, Failed(_)));
    }

    #[test]
    fn v1_has_totals_of_its_own() {
        let groups = groups_of(
            "35 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            "4:memory:/db\n",
            &[
                ("memory/db/memory.limit_in_bytes", "1000\n"),
                ("memory/db/memory.usage_in_bytes", "800\n"),
                ("memory/db/memory.stat", "cache 1\nshmem 0\ntotal_cache 600\ntotal_shmem 100\n"),
                ("memory/db/memory.failcnt", "5\n"),
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ],
        );
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].unreclaimable(), Some(Bytes(300)));
        assert_eq!(groups[0].at_limit, Present(5));
    }

    #[test]
    fn killed_processes_are_those_of_its_own_group() {
        let v2 = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let events = "low 0\nhigh 0\nmax 1700\noom 40\noom_kill 5\n";
        let files = [
            ("db/pg/memory.events", events),
            ("db/memory.events", "low 0\nhigh 0\nmax 1700\noom 40\noom_kill 9\n"),
        ];
        assert_eq!(of_files(v2, "0::/db/pg\n", &files).oom_kills, Present(5), "not of those above");
        assert!(matches!(of_files(v2, "0::/\n", &files).oom_kills, Absent(_)));

        let v1 = "35 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let control = "memory/db/memory.oom_control";
        let of = |text| of_files(v1, "4:memory:/db\n", &[(control, text)]).oom_kills;
        assert_eq!(of("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), Present(3));
        let older = of("oom_kill_disable 0\nunder_oom 0\n");
        assert!(matches!(older, Absent(why) if why.contains("4.13")), "unknown, not zero");
    }
}
