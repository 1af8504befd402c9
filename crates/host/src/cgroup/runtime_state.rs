//! What container runtimes write down about their containers.
//!
//! Their files hold the environment of the containers: all but the pid is dropped when read.

use super::identity::UNKNOWN;
use crate::Host;
use serde::Deserialize;
use untax_core::database::Container;

/// A place where a runtime keeps a directory per container.
struct Place {
    directory: &'static str,
    /// Whether the containers are in directories by namespace.
    by_namespace: bool,
    file: &'static str,
    runtime: &'static str,
}

const PLACES: [Place; 4] = [
    Place { directory: "/run/runc", by_namespace: false, file: "state.json", runtime: "runc" },
    Place { directory: "/run/crun", by_namespace: false, file: "status", runtime: "crun" },
    Place {
        directory: "/run/containerd/runc",
        by_namespace: true,
        file: "state.json",
        runtime: "containerd",
    },
    Place {
        directory: "/run/docker/runtime-runc",
        by_namespace: true,
        file: "state.json",
        runtime: "docker",
    },
];

/// Of a container that was found by a bare id, the runtime: by the directory of its shim or data.
pub(super) fn with_runtime(host: &Host, mut container: Container) -> Container {
    if container.runtime == UNKNOWN {
        let id = &container.id;
        let traces = [
            (format!("/run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}"), "containerd"),
            (format!("/var/lib/docker/containers/{id}"), "docker"),
            (format!("/run/containers/storage/overlay-containers/{id}"), "cri-o"),
        ];
        if let Some((_, runtime)) = traces.iter().find(|(path, _)| host.exists(path)) {
            (*runtime).clone_into(&mut container.runtime);
        }
    }
    container
}

/// The container whose first process shares the mount namespace of `pid`; `None` when that is
/// our own or its container keeps no state.
pub(super) fn by_namespace(host: &Host, pid: u32) -> Option<Container> {
    let namespace = |pid: &str| host.link(&format!("/proc/{pid}/ns/mnt")).into_value();
    let own = namespace(&pid.to_string())?;
    if namespace("self")? == own {
        return None;
    }
    PLACES.iter().find_map(|place| {
        containers(host, place).into_iter().find_map(|(id, directory)| {
            let first = first_process(host, &format!("{directory}/{}", place.file))?;
            (namespace(&first.to_string())? == own)
                .then(|| Container { id, runtime: place.runtime.to_owned() })
        })
    })
}

/// The id and directory of each container in a place.
fn containers(host: &Host, place: &Place) -> Vec<(String, String)> {
    let below = |directory: &str| -> Vec<(String, String)> {
        let names = host.names(directory).into_value().unwrap_or_default();
        names.into_iter().map(|name| (name.clone(), format!("{directory}/{name}"))).collect()
    };
    let first = below(place.directory);
    if !place.by_namespace {
        return first;
    }
    first.into_iter().flat_map(|(_, directory)| below(&directory)).collect()
}

/// The states of runc and crun, as far as they are used.
#[derive(Deserialize)]
struct State {
    #[serde(alias = "init_process_pid")]
    pid: u32,
}

fn first_process(host: &Host, path: &str) -> Option<u32> {
    let pid =
        |text: String| parse(&text).map_or_else(String::new, |pid| format!("{{\"pid\":{pid}}}\n"));
    parse(host.map_text(path, pid).value()?)
}

fn parse(text: &str) -> Option<u32> {
    let State { pid } = serde_json::from_str(text).ok()?;
    (pid > 0).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::super::container_of;
    use super::*;
    use crate::Record;
    use untax_core::database::Cgroup;

    fn cgroup(path: &str) -> Cgroup {
        Cgroup::unknown([("unified".to_owned(), path.to_owned())].into(), "not read")
    }

    fn namespaces(of: &[(&str, &str)]) -> Record {
        of.iter().fold(Record::default(), |record, (pid, number)| {
            record.with_link(&format!("/proc/{pid}/ns/mnt"), &format!("mnt:[{number}]"))
        })
    }

    #[test]
    fn runc_is_asked_whose_namespace_it_is() {
        let record = namespaces(&[("self", "1"), ("7", "2"), ("100", "3"), ("200", "2")])
            .with_file("/run/runc/other/state.json", "{\"id\":\"other\",\"init_process_pid\":100}")
            .with_file("/run/runc/pg/state.json", "{\"id\":\"pg\",\"init_process_pid\":200}");
        let found = container_of(&Host::from_record(record), 7, &cgroup("/lab/any")).unwrap();
        assert_eq!((found.id.as_str(), found.runtime.as_str()), ("pg", "runc"));
    }

    #[test]
    fn crun_and_containerd_too() {
        for (file, runtime) in [
            ("/run/crun/pg/status", "crun"),
            ("/run/containerd/runc/default/pg/state.json", "containerd"),
            ("/run/docker/runtime-runc/moby/pg/state.json", "docker"),
        ] {
            let record = namespaces(&[("self", "1"), ("7", "2")]).with_file(file, "{\"pid\":7}");
            let found = container_of(&Host::from_record(record), 7, &cgroup("/")).unwrap();
            assert_eq!((found.id.as_str(), found.runtime.as_str()), ("pg", runtime));
        }
    }

    #[test]
    fn a_service_with_its_own_mounts_is_no_container() {
        let record = namespaces(&[("self", "1"), ("7", "2")])
            .with_file("/proc/7/status", "NSpid:\t7\n")
            .with_file("/run/runc/broken/state.json", "{");
        let service = cgroup("/system.slice/mariadb.service");
        assert_eq!(container_of(&Host::from_record(record), 7, &service), None);
    }

    #[test]
    fn a_pid_namespace_makes_a_container_of_unknown_name() {
        let record = Record::default().with_file("/proc/7/status", "NSpid:\t7\t1\n");
        let found = container_of(&Host::from_record(record), 7, &cgroup("/any")).unwrap();
        assert_eq!((found.id.as_str(), found.runtime.as_str()), ("unknown", "unknown"));
        assert_eq!(container_of(&Host::from_record(Record::default()), 7, &cgroup("/any")), None);
    }

    #[test]
    fn a_bare_id_is_looked_up() {
        let id = "a".repeat(64);
        let path = format!("/kubepods/pod1/{id}");
        let of = |record: Record| {
            container_of(&Host::from_record(record), 7, &cgroup(&path)).unwrap().runtime
        };
        assert_eq!(of(Record::default()), "unknown");
        let shim = format!("/run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/init.pid");
        assert_eq!(of(Record::default().with_file(&shim, "7")), "containerd");
        let docker = format!("/var/lib/docker/containers/{id}/config.v2.json");
        assert_eq!(of(Record::default().with_file(&docker, "")), "docker");
    }
}
