//! Limits on huge pages and memory, from a process's own group up to the root.

use super::group::{Group, lineage};
use crate::Host;
use std::collections::BTreeMap;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};
use untax_core::database::HugetlbLimit;
use untax_core::host::CgroupLayout;
use untax_core::reading::Gap;

/// cgroup v1 has no word for "unlimited": the limit is then 2^63 rounded down to a multiple of
/// the page, at most 16 GiB less. No machine has a quarter of that.
const V1_UNLIMITED: u64 = 1 << 62;

/// How the files of a controller are called.
pub(super) struct Files {
    pub v2: bool,
    pub max: &'static str,
    rsvd_max: &'static str,
    pub usage: &'static str,
}

const V1: Files = Files {
    v2: false,
    max: "limit_in_bytes",
    rsvd_max: "rsvd.limit_in_bytes",
    usage: "usage_in_bytes",
};

const V2: Files = Files { v2: true, max: "max", rsvd_max: "rsvd.max", usage: "current" };

/// The groups that a controller counts a process in, nearest first, with the names of its files.
pub(super) fn groups(
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
    controller: &str,
) -> Reading<(Vec<Group>, &'static Files)> {
    let mount = |name: &str| {
        let mut mounts = layout.mounts.iter();
        mounts.find(|mount| mount.controllers.iter().any(|found| found == name))
    };
    let found = [(controller, &V1), ("unified", &V2)]
        .into_iter()
        .find_map(|(name, files)| Some((mount(name)?, paths.get(name)?, files)));
    let Some((mount, path, files)) = found else {
        return Absent(format!("no {controller} controller is mounted here"));
    };
    match lineage(mount, path) {
        Some(groups) => Present((groups, files)),
        None => Absent(format!("its group {path} is not to be seen below {}", mount.path)),
    }
}

/// Limits for every size of huge page.
pub(super) fn hugetlb(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<Vec<HugetlbLimit>> {
    groups(layout, paths, "hugetlb").and_then(|(groups, files)| {
        let limits: Result<Vec<_>, Gap> =
            groups.iter().map(|group| hugetlb_of(host, group, files)).collect();
        match limits.map(|limits| limits.concat()) {
            Ok(limits) if limits.is_empty() => {
                Absent("the hugetlb controller is on for none of its groups".to_owned())
            }
            limits => limits.into(),
        }
    })
}

fn hugetlb_of(host: &Host, group: &Group, files: &Files) -> Result<Vec<HugetlbLimit>, Gap> {
    let names = match host.names(&group.directory).into_result() {
        // The group was removed while its process lives on, or is about to end.
        Err(Gap::Absent(_)) => Vec::new(),
        names => names?,
    };
    let mut sizes: Vec<(Bytes, &str)> =
        names.iter().filter_map(|name| size_in(name, files.max)).collect();
    sizes.sort_unstable();
    let limit = |(size_bytes, size): (Bytes, &str)| {
        let read = |file: &str| limit(host, &format!("{}/hugetlb.{size}.{file}", group.directory));
        let rsvd_max_bytes = match read(files.rsvd_max) {
            Absent(why) if why != UNLIMITED => {
                Absent("kernels before 5.7 do not limit reservations".to_owned())
            }
            other => other,
        };
        let (max_bytes, usage_bytes) = (read(files.max), read(files.usage));
        HugetlbLimit {
            cgroup: group.path.clone(),
            size_bytes,
            max_bytes,
            rsvd_max_bytes,
            usage_bytes,
        }
    };
    Ok(sizes.into_iter().map(limit).collect())
}

/// The size in a file name such as `hugetlb.2MB.max`, in bytes and as it is written.
fn size_in<'a>(name: &'a str, suffix: &str) -> Option<(Bytes, &'a str)> {
    let size = name.strip_prefix("hugetlb.")?.strip_suffix(suffix)?.strip_suffix('.')?;
    let (number, unit) = size.split_at_checked(size.len().checked_sub(2)?)?;
    let unit: u64 = match unit {
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
    (bytes > 0).then_some((Bytes(bytes), size))
}

/// The lowest memory limit. A group whose limit cannot be read makes it unknown: that one may be
/// the lowest.
pub(super) fn memory(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<Bytes> {
    groups(layout, paths, "memory").and_then(|(groups, files)| {
        let mut lowest = Absent("no group of this process limits its memory".to_owned());
        for group in groups {
            match limit(host, &format!("{}/memory.{}", group.directory, files.max)) {
                Present(limit) if lowest.value().is_none_or(|known| limit < *known) => {
                    lowest = Present(limit);
                }
                Present(_) | Absent(_) => {}
                gap @ (Denied(_) | Failed(_)) => return gap,
            }
        }
        lowest
    })
}

/// Why a limit that is there limits nothing.
const UNLIMITED: &str = "unlimited";

pub(super) fn limit(host: &Host, path: &str) -> Reading<Bytes> {
    host.text(path).and_then(|text| match (text.trim(), text.trim().parse()) {
        ("max", _) => Absent(UNLIMITED.to_owned()),
        (_, Ok(limit)) if limit >= V1_UNLIMITED => Absent(UNLIMITED.to_owned()),
        (_, Ok(limit)) => Present(Bytes(limit)),
        (_, Err(_)) => Failed(format!("{path} has an unexpected form")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::of_files;
    use super::*;

    const V2_MOUNT: &str = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1_MOUNTS: &str = "33 31 0:33 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n\
         35 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn shown(limits: &Reading<Vec<HugetlbLimit>>) -> Vec<String> {
        let number = |reading: &Reading<Bytes>| match reading {
            Present(bytes) => bytes.to_string(),
            gap => gap.why().unwrap(),
        };
        let line = |limit: &HugetlbLimit| {
            let (max, rsvd) = (number(&limit.max_bytes), number(&limit.rsvd_max_bytes));
            let used = number(&limit.usage_bytes);
            format!("{} {}: {max}, {rsvd}, {used}", limit.cgroup, limit.size_bytes)
        };
        limits.value().unwrap().iter().map(line).collect()
    }

    #[test]
    fn v2_limits_up_to_the_root_nearest_first() {
        let cgroup = of_files(
            V2_MOUNT,
            "0::/db.slice/pg.scope\n",
            &[
                ("db.slice/pg.scope/hugetlb.1GB.current", "1073741824\n"),
                ("db.slice/pg.scope/hugetlb.1GB.max", "2147483648\n"),
                ("db.slice/pg.scope/hugetlb.1GB.rsvd.max", "max\n"),
                ("db.slice/pg.scope/hugetlb.2MB.current", "0\n"),
                ("db.slice/pg.scope/hugetlb.2MB.max", "max\n"),
                ("db.slice/pg.scope/hugetlb.2MB.rsvd.current", "0\n"),
                ("db.slice/pg.scope/memory.max", "max\n"),
                ("db.slice/hugetlb.2MB.max", "4194304\n"),
                ("db.slice/hugetlb.2MB.rsvd.max", "garbage\n"),
                ("db.slice/memory.max", "8589934592\n"),
                ("cgroup.controllers", "memory hugetlb\n"),
            ],
        );
        assert_eq!(
            shown(&cgroup.hugetlb),
            [
                "/db.slice/pg.scope 2 MiB: unlimited, kernels before 5.7 do not limit reservations, 0 B",
                "/db.slice/pg.scope 1 GiB: 2 GiB, unlimited, 1 GiB",
                "/db.slice 2 MiB: 4 MiB, could not be read: \
                 /sys/fs/cgroup/db.slice/hugetlb.2MB.rsvd.max has an unexpected form, \
                 /sys/fs/cgroup/db.slice/hugetlb.2MB.current is not in the capture",
            ]
        );
        assert_eq!(cgroup.memory_limit_bytes, Present(Bytes(8 << 30)));
    }

    #[test]
    fn v1_calls_a_huge_number_unlimited() {
        let cgroup = of_files(
            V1_MOUNTS,
            "8:hugetlb:/docker/x\n4:memory:/docker/x\n0::/\n",
            &[
                ("hugetlb/docker/x/hugetlb.2MB.limit_in_bytes", "9223372036852678656\n"),
                ("hugetlb/docker/x/hugetlb.2MB.rsvd.limit_in_bytes", "6291456\n"),
                ("hugetlb/docker/x/hugetlb.2MB.usage_in_bytes", "2097152\n"),
                ("hugetlb/hugetlb.2MB.limit_in_bytes", "9223372036852678656\n"),
                ("hugetlb/hugetlb.2MB.rsvd.limit_in_bytes", "9223372036852678656\n"),
                ("hugetlb/hugetlb.2MB.usage_in_bytes", "2097152\n"),
                ("memory/docker/x/memory.limit_in_bytes", "1073741824\n"),
                ("memory/docker/memory.limit_in_bytes", "536870912\n"),
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ],
        );
        assert_eq!(
            shown(&cgroup.hugetlb),
            ["/docker/x 2 MiB: unlimited, 6 MiB, 2 MiB", "/ 2 MiB: unlimited, unlimited, 2 MiB"]
        );
        assert_eq!(cgroup.memory_limit_bytes, Present(Bytes(512 << 20)), "the lowest counts");
    }

    #[test]
    fn no_controller_is_absent_with_the_reason() {
        let v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let bare = of_files(v1, "1:cpu:/\n", &[]);
        assert!(matches!(bare.hugetlb, Absent(why) if why.contains("no hugetlb controller")));
        assert!(matches!(bare.memory_limit_bytes, Absent(_)));

        let off = of_files(V2_MOUNT, "0::/a\n", &[("a/cgroup.controllers", "memory\n")]);
        assert!(matches!(off.hugetlb, Absent(why) if why.contains("on for none")));

        let outside = of_files(V2_MOUNT, "0::/../a\n", &[]);
        assert!(matches!(outside.hugetlb, Absent(why) if why.contains("not to be seen")));
    }

    #[test]
    fn a_memory_limit_that_cannot_be_read_is_not_skipped() {
        let files = [("a/memory.max", "x\n"), ("memory.max", "7\n")];
        assert!(matches!(of_files(V2_MOUNT, "0::/a\n", &files).memory_limit_bytes, Failed(_)));
    }

    #[test]
    fn sizes_in_file_names() {
        let size = |name| size_in(name, "max").map(|(bytes, _)| bytes.0);
        assert_eq!(size("hugetlb.64KB.max"), Some(64 << 10));
        assert_eq!(size("hugetlb.2MB.max"), Some(2 << 20));
        assert_eq!(size("hugetlb.16GB.max"), Some(16 << 30));
        for other in [
            "hugetlb.2MB.rsvd.max",
            "hugetlb.2MB.current",
            "memory.max",
            "hugetlb.0MB.max",
            "hugetlb..max",
            "hugetlb.é.max",
            "hugetlb.99999999999999999999GB.max",
        ] {
            assert_eq!(size(other), None, "{other}");
        }
    }
}
