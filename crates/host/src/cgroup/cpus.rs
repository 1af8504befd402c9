//! The CPUs that a process may use at most.

use super::{group, parse_paths};
use crate::Host;
use untax_core::Reading::{self, Absent, Present};
use untax_core::cpus::Cpus;
use untax_core::host::CgroupLayout;

/// The CPUs that are online.
pub fn online(host: &Host) -> Reading<Cpus> {
    let path = "/sys/devices/system/cpu/online";
    host.text(path).parse(path, |text| text.parse().ok())
}

/// The CPUs that the groups in this text of `/proc/PID/cgroup` leave to a process, of those that are
/// online. Where no group limits them these are all.
pub fn allowed(host: &Host, layout: &CgroupLayout, groups: &str) -> Reading<Cpus> {
    let limit = parse_paths(groups).and_then(|paths| {
        let of = |controller: &str, files: &[&str]| {
            let holds = |names: &Vec<String>| names.iter().any(|name| name == controller);
            let mount = layout.mounts.iter().find(|mount| holds(&mount.controllers))?;
            let lineage = group::lineage(mount, paths.get(controller)?)?;
            let all = lineage
                .iter()
                .flat_map(|group| files.iter().map(|file| format!("{}/{file}", group.directory)));
            all.into_iter().find_map(|path| limit(host, &path))
        };
        of("cpuset", &["cpuset.effective_cpus", "cpuset.cpus"])
            .or_else(|| of("unified", &["cpuset.cpus.effective"]))
    });
    online(host).and_then(|online| match limit {
        None => Present(online),
        Some(limit) => match limit.and(&online) {
            none if none.is_empty() => {
                Absent(format!("its cpuset {limit} holds no CPU that is online"))
            }
            some => Present(some),
        },
    })
}

/// A file's CPUs; one that is empty limits nothing.
fn limit(host: &Host, path: &str) -> Option<Cpus> {
    let cpus: Cpus = host.text(path).into_value()?.parse().ok()?;
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use untax_core::host::CgroupMount;

    fn layout(controllers: &[&str], path: &str) -> CgroupLayout {
        let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
        let mount = CgroupMount { controllers, path: path.to_owned(), root: "/".to_owned() };
        CgroupLayout { mounts: vec![mount], memory_hugetlb_accounting: false }
    }

    fn seen(layout: &CgroupLayout, groups: &str, files: &[(&str, &str)]) -> Reading<String> {
        let record = Record::default().with_file("/sys/devices/system/cpu/online", "0-7\n");
        let with = |record: Record, (path, text): &(&str, &str)| record.with_file(path, text);
        let host = Host::from_record(files.iter().fold(record, with));
        allowed(&host, layout, groups).map(|cpus| cpus.to_string())
    }

    #[test]
    fn each_version_of_groups_limits_cpus() {
        let one = layout(&["cpuset"], "/sys/fs/cgroup/cpuset");
        let files = [("/sys/fs/cgroup/cpuset/db/cpuset.effective_cpus", "2-3,9\n")];
        assert_eq!(seen(&one, "4:cpuset:/db\n", &files), Present("2-3".to_owned()));
        // A group of version 2 without the controller is limited by the nearest that has it.
        let two = layout(&["unified"], "/sys/fs/cgroup");
        let files = [("/sys/fs/cgroup/pods/cpuset.cpus.effective", "4-5\n")];
        assert_eq!(seen(&two, "0::/pods/db\n", &files), Present("4-5".to_owned()));
        assert_eq!(seen(&two, "0::/other\n", &files), Present("0-7".to_owned()));
    }

    #[test]
    fn a_cpuset_that_is_offline_is_no_empty_set() {
        let one = layout(&["cpuset"], "/c");
        let left = seen(&one, "4:cpuset:/db\n", &[("/c/db/cpuset.cpus", "8\n")]);
        assert!(matches!(left, Absent(_)), "{left:?}");
    }
}
