//! Limits on requests to block devices, from a process's own group up to the root.

use super::group::Group;
use super::limits::groups;
use crate::Host;
use std::collections::BTreeMap;
use untax_core::Reading::{self, Absent};
use untax_core::database::{IoLimit, Limited};
use untax_core::host::CgroupLayout;
use untax_core::reading::Gap;

/// What version 2 calls each in a line of io.max, and the files of version 1.
const NAMES: [(Limited, &str, &str); 4] = [
    (Limited::Reads, "riops", "read_iops_device"),
    (Limited::Writes, "wiops", "write_iops_device"),
    (Limited::ReadBytes, "rbps", "read_bps_device"),
    (Limited::WrittenBytes, "wbps", "write_bps_device"),
];

/// Every limit of every group, nearest first; none when no group limits any device.
pub(super) fn limits(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<Vec<IoLimit>> {
    groups(layout, paths, "blkio").and_then(|(groups, files)| {
        let limits = if files.v2 { limits_v2 } else { limits_v1 };
        let all: Result<Vec<Vec<IoLimit>>, Gap> = groups.iter().map(|g| limits(host, g)).collect();
        Reading::from(all).map(|all| all.concat())
    })
}

/// Lines such as `254:0 rbps=max wbps=1048576 riops=max wiops=120`.
fn limits_v2(host: &Host, group: &Group) -> Result<Vec<IoLimit>, Gap> {
    lines(host, &format!("{}/io.max", group.directory), |line| {
        let (device, limits) = line.split_once(' ')?;
        let limit = |text: &str| {
            let (name, value) = text.split_once('=')?;
            let known = NAMES.iter().find(|(_, v2, _)| *v2 == name);
            Some(match known {
                Some((what, ..)) if value != "max" => {
                    Some(limit(group, device, *what, value.parse().ok()?))
                }
                // Later kernels may limit more.
                _ => None,
            })
        };
        let limits: Option<Vec<Option<IoLimit>>> = limits.split_whitespace().map(limit).collect();
        Some(limits?.into_iter().flatten().collect())
    })
}

/// Lines such as `254:0 120`.
fn limits_v1(host: &Host, group: &Group) -> Result<Vec<IoLimit>, Gap> {
    let file = |(what, _, file): &(Limited, &str, &str)| {
        lines(host, &format!("{}/blkio.throttle.{file}", group.directory), |line| {
            let (device, value) = line.split_once(' ')?;
            Some(vec![limit(group, device, *what, value.parse().ok()?)])
        })
    };
    let all: Result<Vec<Vec<IoLimit>>, Gap> = NAMES.iter().map(file).collect();
    all.map(|all| all.concat())
}

fn limit(group: &Group, device: &str, what: Limited, per_s: u64) -> IoLimit {
    IoLimit { cgroup: group.path.clone(), device: device.to_owned(), what, per_s }
}

/// What the lines of a file say; nothing where there is none, as in the root group.
fn lines(
    host: &Host,
    path: &str,
    parse: impl Fn(&str) -> Option<Vec<IoLimit>>,
) -> Result<Vec<IoLimit>, Gap> {
    match host.text(path) {
        Absent(_) => Ok(Vec::new()),
        reading => {
            let parsed = reading.parse(path, |text| {
                text.lines().map(|line| parse(line.trim())).collect::<Option<Vec<_>>>()
            });
            parsed.into_result().map(|lines| lines.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::of_files;
    use super::*;
    use untax_core::Reading::{Failed, Present};

    fn limits_of(mounts: &str, group: &str, files: &[(&str, &str)]) -> Reading<Vec<IoLimit>> {
        of_files(mounts, group, files).io
    }

    const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "33 31 0:33 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";

    fn limit(cgroup: &str, what: Limited, per_s: u64) -> IoLimit {
        IoLimit { cgroup: cgroup.to_owned(), device: "254:0".to_owned(), what, per_s }
    }

    #[test]
    fn v2_has_all_of_a_device_in_one_line() {
        let files = [
            ("db/pg/io.max", ""),
            ("db/io.max", "254:0 rbps=max wbps=1048576 riops=max wiops=120 new=9\n"),
        ];
        let expected = vec![
            limit("/db", Limited::WrittenBytes, 1_048_576),
            limit("/db", Limited::Writes, 120),
        ];
        assert_eq!(limits_of(V2, "0::/db/pg\n", &files), Present(expected));
    }

    #[test]
    fn v1_has_a_file_for_each() {
        let files = [
            ("blkio/pg/blkio.throttle.read_iops_device", "254:0 60\n"),
            ("blkio/pg/blkio.throttle.write_bps_device", ""),
        ];
        let limits = limits_of(V1, "4:blkio:/pg\n", &files);
        assert_eq!(limits, Present(vec![limit("/pg", Limited::Reads, 60)]));
        assert_eq!(limits_of(V1, "4:blkio:/\n", &[]), Present(Vec::new()));
    }

    #[test]
    fn garbage_is_not_unlimited() {
        for text in ["254:0\n", "254:0 wiops\n", "254:0 wiops=many\n", "\n"] {
            let limits = limits_of(V2, "0::/a\n", &[("a/io.max", text)]);
            assert!(matches!(limits, Failed(_)), "{text:?}");
        }
    }
}
