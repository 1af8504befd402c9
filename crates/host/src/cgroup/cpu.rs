//! CPU limits, from a process's own group up to the root, and how often they held it back.

use super::group::Group;
use super::limits::groups;
use crate::Host;
use std::collections::BTreeMap;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::Seconds;
use untax_core::database::CpuLimit;
use untax_core::host::CgroupLayout;
use untax_core::reading::Gap;

/// Every group that limits CPU time, nearest first; none when no group does.
pub(super) fn limits(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<Vec<CpuLimit>> {
    groups(layout, paths, "cpu").and_then(|(groups, files)| {
        let quota = if files.v2 { quota_v2 } else { quota_v1 };
        let limits = groups.iter().map(|group| {
            let Some((quota_us, period_us)) = quota(host, &group.directory)? else {
                return Ok(None);
            };
            let counted = statistics(host, group);
            Ok(Some(CpuLimit {
                cgroup: group.path.clone(),
                cpus: quota_us / period_us,
                period_s: Seconds(period_us / 1e6),
                periods: counted.as_ref().and_then(|(periods, _)| Present(*periods)),
                throttled_periods: counted.and_then(|(_, throttled)| Present(throttled)),
            }))
        });
        let limits: Result<Vec<Option<CpuLimit>>, Gap> = limits.collect();
        Reading::from(limits).map(|limits| limits.into_iter().flatten().collect())
    })
}

/// The groups of a process, nearest first, whose weight for CPU time is not the default, with the weight.
pub(super) fn weights(
    host: &Host,
    layout: &CgroupLayout,
    paths: &BTreeMap<String, String>,
) -> Reading<Vec<(String, u64)>> {
    groups(layout, paths, "cpu").and_then(|(groups, files)| {
        let (name, default) = if files.v2 { ("cpu.weight", 100) } else { ("cpu.shares", 1024) };
        let weights = groups.iter().map(|group| {
            let path = format!("{}/{name}", group.directory);
            match host.text(&path) {
                // The root group has none, and neither has one without the controller.
                Absent(_) => Ok(None),
                reading => {
                    let weight = reading.parse(&path, |text| text.trim().parse::<u64>().ok());
                    weight.into_result().map(|weight| Some((group.path.clone(), weight)))
                }
            }
        });
        let weights: Result<Vec<Option<(String, u64)>>, Gap> = weights.collect();
        let is_other = |(_, weight): &(String, u64)| *weight != default;
        Reading::from(weights).map(|all| all.into_iter().flatten().filter(is_other).collect())
    })
}

/// Microseconds of CPU time in microseconds; `None` when there is no limit, as in the root group.
fn quota_v2(host: &Host, directory: &str) -> Result<Option<(f64, f64)>, Gap> {
    let path = format!("{directory}/cpu.max");
    match host.text(&path) {
        Absent(_) => Ok(None),
        reading => {
            let parsed = reading.parse(&path, |text| {
                let (quota, period) = text.trim().split_once(' ')?;
                let period = positive(period)?;
                if quota == "max" { Some(None) } else { Some(Some((positive(quota)?, period))) }
            });
            parsed.into_result()
        }
    }
}

fn quota_v1(host: &Host, directory: &str) -> Result<Option<(f64, f64)>, Gap> {
    let path = format!("{directory}/cpu.cfs_quota_us");
    let quota = match host.text(&path) {
        Absent(_) => return Ok(None),
        reading => reading.parse(&path, |text| text.trim().parse::<i64>().ok()).into_result()?,
    };
    if quota <= 0 {
        return Ok(None);
    }
    let path = format!("{directory}/cpu.cfs_period_us");
    let period = host.text(&path).parse(&path, |text| positive(text.trim())).into_result()?;
    Ok(Some((quota as f64, period)))
}

fn positive(text: &str) -> Option<f64> {
    text.parse::<u64>().ok().filter(|number| *number > 0).map(|number| number as f64)
}

/// Periods in which the group ran, and in which it was throttled.
fn statistics(host: &Host, group: &Group) -> Reading<(u64, u64)> {
    let path = format!("{}/cpu.stat", group.directory);
    host.text(&path).and_then(|text| {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            line.trim().parse().ok()
        };
        match (field("nr_periods"), field("nr_throttled")) {
            (Some(periods), Some(throttled)) => Present((periods, throttled)),
            _ => Failed(format!("{path} has an unexpected form")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{cpu_weights, of_files};
    use super::*;
    use crate::Record;
    use untax_core::host::CgroupMount;

    fn limits_of(mounts: &str, group: &str, files: &[(&str, &str)]) -> Reading<Vec<CpuLimit>> {
        of_files(mounts, group, files).cpu
    }

    const V2: &str = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "33 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
    const STAT: &str = "usage_usec 9\nnr_periods 61\nnr_throttled 60\nthrottled_usec 5\n";

    #[test]
    fn v2_groups_that_limit() {
        let files = [
            ("db/pg/cpu.max", "max 100000\n"),
            ("db/cpu.max", "150000 100000\n"),
            ("db/cpu.stat", STAT),
        ];
        let limits = limits_of(V2, "0::/db/pg\n", &files).into_value().unwrap();
        let [limit] = &limits[..] else { panic!("{limits:?}") };
        assert_eq!((limit.cgroup.as_str(), limit.cpus, limit.period_s.0), ("/db", 1.5, 0.1));
        assert_eq!((&limit.periods, &limit.throttled_periods), (&Present(61), &Present(60)));
    }

    #[test]
    fn a_weight_that_is_not_the_default_is_named() {
        let weights = |controllers: &str, group: &str, files: &[(&str, &str)]| {
            let mount = CgroupMount {
                controllers: vec![controllers.to_owned()],
                path: "/sys/fs/cgroup".to_owned(),
                root: "/".to_owned(),
            };
            let layout = CgroupLayout { mounts: vec![mount], memory_hugetlb_accounting: false };
            let record = Record::default().with_file("/proc/7/cgroup", group);
            let with = |record: Record, (path, text): &(&str, &str)| record.with_file(path, text);
            let host = Host::from_record(files.iter().fold(record, with));
            cpu_weights(&host, &layout, 7).into_value().unwrap()
        };
        let v2 = [
            ("/sys/fs/cgroup/db/pg/cpu.weight", "100\n"),
            ("/sys/fs/cgroup/db/cpu.weight", "50\n"),
        ];
        assert_eq!(weights("unified", "0::/db/pg\n", &v2), [("/db".to_owned(), 50)]);
        assert_eq!(weights("unified", "0::/db/pg\n", &v2[..1]), []);
        let v1 = [("/sys/fs/cgroup/pg/cpu.shares", "1024\n")];
        assert_eq!(weights("cpu", "3:cpu:/pg\n", &v1), []);
        let v1 = [("/sys/fs/cgroup/pg/cpu.shares", "100\n")];
        assert_eq!(weights("cpu", "3:cpu:/pg\n", &v1), [("/pg".to_owned(), 100)]);
    }

    #[test]
    fn v1_says_minus_one_for_none() {
        let files = [
            ("cpu/pg/cpu.cfs_quota_us", "20000\n"),
            ("cpu/pg/cpu.cfs_period_us", "100000\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
        ];
        let limits = limits_of(V1, "4:cpu,cpuacct:/pg\n", &files).into_value().unwrap();
        assert_eq!(limits.len(), 1);
        assert!((limits[0].cpus - 0.2).abs() < 1e-9);
        assert!(matches!(limits[0].periods, Absent(_)), "no cpu.stat");
        let none = limits_of(V1, "4:cpu,cpuacct:/\n", &[("cpu/cpu.cfs_quota_us", "-1\n")]);
        assert_eq!(none, Present(Vec::new()));
    }

    #[test]
    fn garbage_is_not_unlimited() {
        for text in ["", "max", "0 0\n", "x 100000\n", "5 0\n"] {
            let limits = limits_of(V2, "0::/a\n", &[("a/cpu.max", text)]);
            assert!(matches!(limits, Failed(_)), "{text:?}");
        }
    }
}
