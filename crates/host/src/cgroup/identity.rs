//! Container and pod, from the path of a control group.
//!
//! Each runtime names the groups of its containers in its own way, and in another one where
//! systemd manages them. Containers inside of containers have both in one path: the last counts.

use untax_core::database::{Container, Pod};

/// What comes before the id in the name of a container's group.
const PREFIXES: [(&str, &str); 7] = [
    ("cri-containerd-", "containerd"),
    ("crio-", "cri-o"),
    ("docker-", "docker"),
    ("libpod-payload-", "podman"),
    ("libpod-", "podman"),
    ("nerdctl-", "containerd"),
    ("runc-", "runc"),
];

/// The group above one that is called by its bare id.
const PARENTS: [(&str, &str); 5] = [
    ("cri-containerd", "containerd"),
    ("crio", "cri-o"),
    ("docker", "docker"),
    ("libpod_parent", "podman"),
    ("nerdctl", "containerd"),
];

/// The runtime of a container whose path does not tell.
pub(super) const UNKNOWN: &str = "unknown";

/// Ids are 64 hexadecimal digits; some runtimes cut them to twelve.
const ID_LETTERS: usize = 64;
const SHORT_ID_LETTERS: usize = 12;

/// The innermost container in a path.
pub(super) fn container(path: &str) -> Option<Container> {
    let names = names(path);
    let of = |n: usize| {
        let above = n.checked_sub(1).and_then(|above| names.get(above)).copied();
        container_at(names.get(n)?, above)
    };
    (0..names.len()).rev().find_map(of)
}

/// The parts of a path, without the mark of a removed group. A runtime that was told a systemd path but manages groups itself leaves
/// the colons of `slice:prefix:id` in.
fn names(path: &str) -> Vec<&str> {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.split(['/', ':']).filter(|name| !name.is_empty()).collect()
}

fn container_at(name: &str, above: Option<&str>) -> Option<Container> {
    let found = |id: &str, runtime: &str| {
        Some(Container { id: id.to_owned(), runtime: runtime.to_owned() })
    };
    let bare = name.strip_suffix(".scope").unwrap_or(name);
    let prefixed = PREFIXES.iter().find_map(|(prefix, runtime)| {
        let id = bare.strip_prefix(prefix).filter(|id| is_hex(id, SHORT_ID_LETTERS))?;
        Some((id, *runtime))
    });
    if let Some((id, runtime)) = prefixed {
        return found(id, runtime);
    }
    if let Some(id) = name.strip_prefix("lxc.payload.").filter(|id| !id.is_empty()) {
        return found(id, "lxc");
    }
    if above == Some("lxc") {
        return found(name, "lxc");
    }
    if !is_hex(name, ID_LETTERS) || name.len() != ID_LETTERS {
        return None;
    }
    let parent = PARENTS.iter().find(|(parent, _)| above == Some(*parent));
    found(name, parent.map_or(UNKNOWN, |(_, runtime)| runtime))
}

fn is_hex(text: &str, at_least: usize) -> bool {
    text.len() >= at_least && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The innermost pod in a path.
pub(super) fn pod(path: &str) -> Option<Pod> {
    let names = names(path);
    let of = |n: usize| {
        let name = names.get(n)?;
        let name = name.strip_suffix(".slice").unwrap_or(name);
        // systemd: kubepods-burstable-pod<uid>.slice; else kubepods/burstable/pod<uid>.
        let (head, uid) =
            name.rsplit_once("-pod").or_else(|| Some(("", name.strip_prefix("pod")?)))?;
        // A dash has a meaning in the name of a slice, so that the kubelet writes `_`.
        let uid = uid.replace('_', "-");
        let above = names.get(..n)?;
        let is_kubernetes =
            head.contains("kubepods") || above.iter().any(|name| name.contains("kubepods"));
        let qos = ["burstable", "besteffort"]
            .into_iter()
            .find(|qos| head.contains(qos) || above.last().is_some_and(|name| name.contains(qos)));
        (is_kubernetes && is_uid(&uid))
            .then(|| Pod { uid, qos: qos.unwrap_or("guaranteed").to_owned() })
    };
    (0..names.len()).rev().find_map(of)
}

/// A UUID, or the 32 hexadecimal digits of a pod that the kubelet reads from a file.
fn is_uid(uid: &str) -> bool {
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    let dashes = uid.bytes().filter(|byte| *byte == b'-').count();
    digits == 32 && (dashes == 0 || dashes == 4) && digits + dashes == uid.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f7a0b4c9d2e1f6085a7c3b9e4d2f1a06b8c5d7e9f0a1b2c3d4e5f60718293a4";
    const UID: &str = "0f6a3c1e-58d2-4b7a-9c3d-1e2f3a4b5c6d";

    /// Fills in `<id>`, `<uid>` and `<u_id>`.
    fn path(pattern: &str) -> String {
        let escaped = UID.replace('-', "_");
        pattern.replace("<id>", ID).replace("<uid>", UID).replace("<u_id>", &escaped)
    }

    #[test]
    fn containers_of_every_runtime_and_driver() {
        for (pattern, runtime) in [
            ("/docker/<id>", "docker"),
            ("/system.slice/docker-<id>.scope", "docker"),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-<id>.scope",
                "docker",
            ),
            ("/docker/<id>/init.scope", "docker"),
            ("/kubepods.slice/kubepods-pod<u_id>.slice/cri-containerd-<id>.scope", "containerd"),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<u_id>.slice/\
                 cri-containerd-<id>.scope",
                "containerd",
            ),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod<u_id>.slice/\
                 crio-<id>.scope",
                "cri-o",
            ),
            ("/kubepods/burstable/pod<uid>/crio-<id>", "cri-o"),
            ("/kubepods/burstable/pod<uid>/<id>", "unknown"),
            ("/kubepods.slice/kubepods-pod<u_id>.slice/docker-<id>.scope/system.slice", "docker"),
            ("/system.slice/kubepods-burstable-pod<u_id>.slice:cri-containerd:<id>", "containerd"),
            ("/machine.slice/libpod-<id>.scope", "podman"),
            ("/machine.slice/libpod-<id>.scope/container", "podman"),
            ("/libpod_parent/libpod-<id>", "podman"),
            ("/libpod_parent/<id>", "podman"),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-<id>.scope",
                "podman",
            ),
            ("/system.slice/nerdctl-<id>.scope", "containerd"),
            ("/ecs/6a1f/<id>", "unknown"),
            ("/../../system.slice/docker-<id>.scope", "docker"),
            ("/system.slice/docker-<id>.scope (deleted)", "docker"),
        ] {
            let found = container(&path(pattern));
            let found = found.unwrap_or_else(|| panic!("{pattern}: no container"));
            assert_eq!((found.id.as_str(), found.runtime.as_str()), (ID, runtime), "{pattern}");
        }
    }

    #[test]
    fn the_innermost_container_counts() {
        let outer = "f".repeat(64);
        let kind = path(&format!(
            "/docker/{outer}/kubelet.slice/kubelet-kubepods.slice/\
             kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod<u_id>.slice/\
             cri-containerd-<id>.scope"
        ));
        assert_eq!(container(&kind).unwrap().id, ID);
        assert_eq!(pod(&kind).unwrap().qos, "burstable");
        let docker = format!("/docker/{outer}/docker/{ID}");
        assert_eq!(container(&docker).unwrap().id, ID);
    }

    #[test]
    fn lxc_containers_have_names() {
        for name in ["/lxc.payload.db-1", "/lxc.payload.db-1/system.slice/postgresql.service"] {
            let found = container(name).unwrap();
            assert_eq!((found.id.as_str(), found.runtime.as_str()), ("db-1", "lxc"));
        }
        assert_eq!(container("/lxc/db-1").unwrap().id, "db-1");
        assert_eq!(container("/lxc.monitor.db-1"), None);
    }

    #[test]
    fn other_groups_are_no_containers() {
        for pattern in [
            "/",
            "/init.scope",
            "/system.slice/postgresql@15-main.service",
            "/system.slice/docker.service",
            "/system.slice/docker-registry.scope",
            "/system.slice/crio-conmon-<id>.scope",
            "/machine.slice/libpod-conmon-<id>.scope",
            "/user.slice/user-1000.slice/session-2.scope",
            "/agent/670b9c3eda7344afee281647cc0e0ba5",
            "/kubepods.slice/kubepods-burstable.slice",
            "/docker",
            "/docker/buildkit",
            "/lxc",
        ] {
            assert_eq!(container(&path(pattern)), None, "{pattern}");
        }
    }

    #[test]
    fn pods_with_their_class() {
        for (pattern, qos) in [
            ("/kubepods.slice/kubepods-pod<u_id>.slice/cri-containerd-<id>.scope", "guaranteed"),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<u_id>.slice",
                "burstable",
            ),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod<u_id>.slice/\
                 crio-<id>.scope/sub",
                "besteffort",
            ),
            ("/kubepods/pod<uid>/<id>", "guaranteed"),
            ("/kubepods/burstable/pod<uid>/<id>", "burstable"),
            ("/kubepods/besteffort/pod<uid>", "besteffort"),
            ("/../../kubepods/burstable/pod<uid>/<id>", "burstable"),
            ("/system.slice/kubepods-burstable-pod<u_id>.slice:cri-containerd:<id>", "burstable"),
        ] {
            let found = pod(&path(pattern)).unwrap_or_else(|| panic!("{pattern}: no pod"));
            assert_eq!((found.uid.as_str(), found.qos.as_str()), (UID, qos), "{pattern}");
        }
    }

    #[test]
    fn a_static_pod_has_a_hash_for_uid() {
        let hash = "8c6f2e0a4b1d3957f0e2c4a6b8d0f135";
        let found = pod(&format!("/kubepods/burstable/pod{hash}/{ID}")).unwrap();
        assert_eq!(found.uid, hash);
    }

    #[test]
    fn other_groups_are_no_pods() {
        for pattern in [
            "/",
            "/kubepods.slice/kubepods-burstable.slice",
            "/system.slice/podman.service",
            "/machine.slice/libpod_pod_<id>.slice",
            "/pod<uid>",
            "/kubepods/podx",
            "/kubepods/pod",
            "/docker/<id>",
        ] {
            assert_eq!(pod(&path(pattern)), None, "{pattern}");
        }
    }
}
