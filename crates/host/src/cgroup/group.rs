//! A control group and those above it.

use untax_core::host::CgroupMount;

/// A control group: its path below the mount, and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub path: String,
    pub directory: String,
}

/// The group at `path` and those above it, nearest first, as far as the mount shows them.
///
/// Paths are as seen from this process's cgroup namespace: one that climbs is outside of it, and
/// visible only through a mount whose root climbs as far. `None` if it is not visible.
pub(super) fn lineage(mount: &CgroupMount, path: &str) -> Option<Vec<Group>> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
