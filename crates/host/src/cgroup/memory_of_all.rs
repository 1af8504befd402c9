//! The memory of every control group, to see which of them takes it from the others.

use super::memory::number_after;
use crate::{Host, pressure};
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::CgroupLayout;
use untax_core::pressure::GroupMemory;

/// No node runs so many containers; where there are more groups, the rest are not looked at.
const MOST: usize = 1000;

/// What the names of a group's files begin with; everything else in its directory is a group.
const FILES: [&str; 15] = [
    "blkio.", "cgroup.", "cpu.", "cpuacct.", "cpuset.", "devices.", "dmem.", "freezer.",
    "hugetlb.", "io.", "irq.", "memory.", "misc.", "pids.", "rdma.",
];
const OTHER_FILES: [&str; 3] = ["notify_on_release", "release_agent", "tasks"];

/// What systemd names its groups like: they may begin as files do.
const UNITS: [&str; 3] = [".slice", ".scope", ".service"];

/// Every group but the root, whose memory nobody limits.
pub fn memory_of_all(
    host: &Host,
    layout: &CgroupLayout,
    page_bytes: u64,
) -> Reading<Vec<GroupMemory>> {
    let mount = |name: &str| {
        let mut mounts = layout.mounts.iter();
        mounts.find(|mount| mount.controllers.iter().any(|found| found == name))
    };
    let v1 = mount("memory");
    let Some(mount) = v1.or_else(|| mount("unified")) else {
        return Absent("no control groups count memory here".to_owned());
    };
    let top = mount.path.trim_end_matches('/');
    let groups = walk(host, top);
    if groups.is_empty() {
        return Absent(format!("{top} has no groups"));
    }
    let one = |(path, leaf): (String, bool)| {
        let directory = format!("{top}{path}");
        let read = if v1.is_some() { v1_counts } else { v2_counts };
        // A group that has no such files is not counted, or was removed meanwhile.
        let counted = read(host, &directory, leaf, page_bytes)?;
        Some(GroupMemory { cgroup: path, ..counted })
    };
    Present(groups.into_iter().filter_map(one).collect())
}

/// The path of every group below a directory, and whether it has none below itself.
fn walk(host: &Host, top: &str) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    let mut waiting = vec![String::new()];
    while let Some(path) = waiting.pop() {
        let names = host.names(&format!("{top}{path}")).into_value().unwrap_or_default();
        let below: Vec<String> = names
            .iter()
            .filter(|name| is_group(name))
            .map(|name| format!("{path}/{name}"))
            .collect();
        if !path.is_empty() {
            found.push((path, below.is_empty()));
        }
        if found.len() + waiting.len() < MOST {
            waiting.extend(below);
        }
    }
    found.sort_unstable();
    found
}

fn is_group(name: &str) -> bool {
    UNITS.iter().any(|unit| name.ends_with(unit))
        || !(FILES.iter().any(|file| name.starts_with(file)) || OTHER_FILES.contains(&name))
}

/// The most base pages that one piece of memory can have: 2 MiB of 4 KiB.
const MOST_PAGES_EACH: f64 = 512.0;

/// Version 1 counts what a group's own processes took and how often its own limit was met. It
/// counts pieces of one page or of many: how large they are on average tell those that are there.
fn v1_counts(host: &Host, directory: &str, _leaf: bool, page_bytes: u64) -> Option<GroupMemory> {
    let at_limit = host.text(&format!("{directory}/memory.failcnt")).into_value()?;
    let names = ["pgpgin", "pgpgout", "cache", "rss", READ_AGAIN];
    let [taken, left, cache, rss, read_again] = stat(host, directory, names)?;
    let (taken, left, cache, rss) = (taken?, left?, cache?, rss?);
    let pieces = taken.saturating_sub(left).max(1) as f64;
    let pages = cache.saturating_add(rss) as f64 / page_bytes.max(1) as f64;
    Some(GroupMemory {
        cgroup: String::new(),
        at_limit: at_limit.trim().parse().ok()?,
        taken_pages: taken,
        pages_each: (pages / pieces).clamp(1.0, MOST_PAGES_EACH),
        read_again_pages: pages_or_gap(read_again),
        stalled_s: Absent("control groups of version 1 do not count it".to_owned()),
    })
}

/// Version 2 counts a group and all below it together, but only those without any below have
/// processes. It does not count what was taken: that is what was reclaimed, and what is there.
fn v2_counts(host: &Host, directory: &str, leaf: bool, page_bytes: u64) -> Option<GroupMemory> {
    let file = |name: &str| format!("{directory}/memory.{name}");
    let events = host.text(&file("events.local")).or_else(|| host.text(&file("events")));
    let events = events.into_value()?;
    let at_limit = number_after(&events, "high")?.saturating_add(number_after(&events, "max")?);
    let usage: u64 = host.text(&file("current")).into_value()?.trim().parse().ok()?;
    let [reclaimed, read_again] = stat(host, directory, ["pgsteal", READ_AGAIN])?;
    let taken = reclaimed?.saturating_add(usage / page_bytes.max(1));
    let stalled_s = pressure::read_stalls(host, &file("pressure")).map(|stalled| stalled.some_s);
    let own = |count: u64| if leaf { count } else { 0 };
    Some(GroupMemory {
        cgroup: String::new(),
        at_limit,
        taken_pages: own(taken),
        pages_each: 1.0,
        read_again_pages: pages_or_gap(read_again).map(own),
        stalled_s,
    })
}

/// Pages of files that were read again soon after they had been evicted: of cgroup v2 since kernel
/// 5.9, of v1 since 6.1.
const READ_AGAIN: &str = "workingset_refault_file";

fn pages_or_gap(read_again: Option<u64>) -> Reading<u64> {
    match read_again {
        Some(pages) => Present(pages),
        None => Absent(format!("memory.stat has no {READ_AGAIN}; kernels since 6.1 have")),
    }
}

/// Counters of `memory.stat` by name.
fn stat<const N: usize>(
    host: &Host,
    directory: &str,
    names: [&str; N],
) -> Option<[Option<u64>; N]> {
    let keep = |line: &str| names.iter().any(|n| line.starts_with(n)).then(|| line.to_owned());
    let text = host.filter_lines(&format!("{directory}/memory.stat"), keep).into_value()?;
    Some(names.map(|name| number_after(&text, name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Record, facts};
    use untax_core::Seconds;

    fn all(mounts: &str, files: &[(&str, &str)]) -> Reading<Vec<GroupMemory>> {
        let record = Record::default().with_file("/proc/self/mountinfo", mounts);
        let with = |record: Record, (path, text): &(&str, &str)| {
            record.with_file(&format!("/sys/fs/cgroup/{path}"), text)
        };
        let host = Host::from_record(files.iter().fold(record, with));
        let layout = facts::read_all(&host).cgroup.into_value().unwrap();
        memory_of_all(&host, &layout, 4096)
    }

    const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "35 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn v2_counts_processes_where_they_are() {
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull total=7\n";
        let found = all(
            V2,
            &[
                ("a.slice/memory.events.local", "low 0\nhigh 1\nmax 2\noom 0\n"),
                ("a.slice/memory.current", "409600\n"),
                ("a.slice/memory.stat", "anon 1\npgsteal 5\npgsteal_kswapd 9\n"),
                ("a.slice/memory.pressure", pressure),
                ("a.slice/memory.scope/memory.events.local", "low 0\nhigh 30\nmax 4\noom 0\n"),
                ("a.slice/memory.scope/memory.current", "40960\n"),
                ("a.slice/memory.scope/memory.stat", "pgsteal_kswapd 9\npgsteal 5\n"),
                ("a.slice/garbage/memory.events.local", "high x\n"),
            ],
        );
        let [slice, scope] = &found.into_value().unwrap()[..] else { panic!("two groups") };
        assert_eq!((slice.cgroup.as_str(), slice.at_limit, slice.taken_pages), ("/a.slice", 3, 0));
        assert_eq!(slice.stalled_s, Present(Seconds(1.5)));
        assert_eq!(scope.cgroup, "/a.slice/memory.scope");
        assert_eq!((scope.at_limit, scope.taken_pages), (34, 15));
        assert!(matches!(scope.stalled_s, Absent(_)));
    }

    #[test]
    fn v1_counts_each_group_by_itself() {
        let found = all(
            V1,
            &[
                ("memory/pod/memory.failcnt", "7\n"),
                (
                    "memory/pod/memory.stat",
                    "cache 0\nrss 0\npgpgin 100\npgpgout 100\ntotal_pgpgin 900\n",
                ),
                ("memory/pod/db/memory.failcnt", "0\n"),
                (
                    "memory/pod/db/memory.stat",
                    "cache 409600\nrss 409600\npgpgin 800\npgpgout 750\n\
                     workingset_refault_file 30\ntotal_workingset_refault_file 90\n",
                ),
            ],
        );
        let counts: Vec<_> = found.into_value().unwrap();
        // 200 pages in the 50 pieces that are there.
        let each: Vec<f64> = counts.iter().map(|group| group.pages_each).collect();
        assert_eq!(each, [1.0, 4.0]);
        assert!(matches!(counts[0].read_again_pages, Absent(_)));
        assert_eq!(counts[1].read_again_pages, Present(30));
        let counts: Vec<_> =
            counts.iter().map(|g| (g.cgroup.as_str(), g.at_limit, g.taken_pages)).collect();
        assert_eq!(counts, [("/pod", 7, 100), ("/pod/db", 0, 800)]);
    }

    #[test]
    fn no_groups_are_absent() {
        assert!(matches!(all(V1, &[("memory/tasks", "1\n")]), Absent(_)));
    }
}
