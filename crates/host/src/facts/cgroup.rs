//! Which control groups there are, and where they are mounted.

use super::Fact;
use crate::Host;
use crate::mountinfo::unescape;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::{CgroupLayout, CgroupMount, HostFacts};

pub(super) const FACT: Fact = Fact {
    id: "cgroup",
    summary: "cgroup v1, v2 or hybrid, the mounts, and whether huge pages count as memory",
    source: "/proc/self/mountinfo",
    privilege: "none",
    minimum_kernel: "2.6.26",
    cost: "one file that grows with the mounts",
    read,
};

/// The controllers of cgroup v1; the other words among a mount's options are not.
const V1_CONTROLLERS: [&str; 14] = [
    "blkio",
    "cpu",
    "cpuacct",
    "cpuset",
    "debug",
    "devices",
    "freezer",
    "hugetlb",
    "memory",
    "misc",
    "net_cls",
    "net_prio",
    "perf_event",
    "pids",
];

/// How the v2 hierarchy is called among the mounts.
const UNIFIED: &str = "unified";

/// Where control groups are, alone: for programs that look again and again.
pub fn layout(host: &Host) -> Reading<CgroupLayout> {
    let mut facts = HostFacts::unknown("not read");
    read(host, &mut facts);
    facts.cgroup
}

fn read(host: &Host, facts: &mut HostFacts) {
    let keep = |line: &str| parse_line(line).map(|_| line.to_owned());
    let found = host.filter_lines("/proc/self/mountinfo", keep).and_then(|text| parse(&text));
    facts.cgroup_version = found.as_ref().map(|(version, _)| (*version).to_owned());
    facts.cgroup = found.map(|(_, layout)| layout);
}

/// A cgroup mount with the options that matter.
struct Mount {
    mount: CgroupMount,
    counts_hugetlb: bool,
}

fn parse(text: &str) -> Reading<(&'static str, CgroupLayout)> {
    let found: Vec<Mount> = text.lines().filter_map(parse_line).collect();
    let is_unified = |mount: &CgroupMount| mount.controllers == [UNIFIED];
    // A named hierarchy without controllers, as systemd's own, limits nothing.
    let has_v1 = found
        .iter()
        .flat_map(|found| &found.mount.controllers)
        .any(|controller| V1_CONTROLLERS.contains(&controller.as_str()));
    let has_v2 = found.iter().any(|found| is_unified(&found.mount));
    let version = match (has_v1, has_v2) {
        (true, true) => "hybrid",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => return Absent("no control groups are mounted".to_owned()),
    };
    let counts = found.iter().any(|found| is_unified(&found.mount) && found.counts_hugetlb);
    Present((version, CgroupLayout { mounts: best(found), memory_hugetlb_accounting: counts }))
}

/// One mount of each hierarchy: the one that shows most of it, the first where several do.
/// Containers see their groups bind-mounted once more.
fn best(found: Vec<Mount>) -> Vec<CgroupMount> {
    let mut mounts: Vec<CgroupMount> = Vec::new();
    for Mount { mount, .. } in found {
        match mounts.iter_mut().find(|known| known.controllers == mount.controllers) {
            Some(known) if known.root != "/" && mount.root.len() < known.root.len() => {
                *known = mount;
            }
            Some(_) => {}
            None => mounts.push(mount),
        }
    }
    mounts
}

/// Parses a line of `mountinfo`; `None` for anything but control groups.
fn parse_line(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, path) = (unescape(place.next()?), unescape(place.next()?));
    let mut kind = kind.split(' ');
    let (kind, _source, options) = (kind.next()?, kind.next()?, kind.next()?);
    let options: Vec<&str> = options.split(',').collect();
    let controllers: Vec<String> = match kind {
        "cgroup2" => vec![UNIFIED.to_owned()],
        "cgroup" => options
            .iter()
            .filter(|option| V1_CONTROLLERS.contains(option) || option.starts_with("name="))
            .map(|option| (*option).to_owned())
            .collect(),
        _ => return None,
    };
    let counts_hugetlb = options.contains(&"memory_hugetlb_accounting");
    let mount = CgroupMount { controllers, path, root };
    (!mount.controllers.is_empty() && mount.path.starts_with('/'))
        .then_some(Mount { mount, counts_hugetlb })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 \
                      rw,nsdelegate,memory_recursiveprot\n";
    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
        33 31 0:33 / /sys/fs/cgroup/hugetlb rw,relatime - cgroup cgroup rw,hugetlb\n\
        34 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
    const UNIFIED_TOO: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn layout(text: &str) -> CgroupLayout {
        parse(text).into_value().unwrap().1
    }

    fn version(text: &str) -> &'static str {
        parse(text).into_value().unwrap().0
    }

    #[test]
    fn the_three_versions() {
        assert_eq!(version(V2), "v2");
        assert_eq!(version(V1), "v1");
        assert_eq!(version(&format!("{V1}{UNIFIED_TOO}")), "hybrid");
        let named = "34 31 0:37 / /sys/fs/cgroup/elogind rw - cgroup cgroup rw,name=elogind\n";
        assert_eq!(version(&format!("{V2}{named}")), "v2");
        assert!(matches!(parse("1 1 0:1 / / rw - ext4 /dev/sda rw\n"), Absent(_)));
    }

    #[test]
    fn mounts_carry_their_controllers() {
        let mounts = layout(V1).mounts;
        let shown: Vec<_> =
            mounts.iter().map(|mount| (mount.controllers.join("+"), mount.path.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("cpu+cpuacct".to_owned(), "/sys/fs/cgroup/cpu,cpuacct"),
                ("hugetlb".to_owned(), "/sys/fs/cgroup/hugetlb"),
                ("name=systemd".to_owned(), "/sys/fs/cgroup/systemd"),
            ]
        );
    }

    #[test]
    fn accounting_of_huge_pages_is_a_mount_option() {
        assert!(!layout(V2).memory_hugetlb_accounting);
        let counted = V2.replace("recursiveprot", "recursiveprot,memory_hugetlb_accounting");
        assert!(layout(&counted).memory_hugetlb_accounting);
    }

    #[test]
    fn of_several_mounts_the_one_that_shows_most_counts() {
        let part = "90 24 0:30 /docker/abc /mnt/my\\040group rw - cgroup2 cgroup rw\n";
        assert_eq!(layout(part).mounts[0].path, "/mnt/my group");
        assert_eq!(layout(part).mounts[0].root, "/docker/abc");
        assert_eq!(layout(&format!("{part}{V2}")).mounts[0].path, "/sys/fs/cgroup");
        assert_eq!(layout(&format!("{V2}{part}")).mounts[0].path, "/sys/fs/cgroup");
    }
}
