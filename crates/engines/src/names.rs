//! The stable names of databases: `ENGINE@PORT` on a host, `NAMESPACE/POD/CONTAINER` in a cluster. They outlive a
//! restart and never hold a pid. Pods are named by files of this node: no API server is asked.

use crate::listeners::listening_ports;
use untax_core::Database;
use untax_host::Host;

/// Where a pod's container is known by names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodNames {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// Empty where a pod has several containers and the runtime does not say which this is.
    pub container: String,
}

/// The kubelet keeps the logs of each container in `NAMESPACE_POD_UID/CONTAINER` here.
const LOGS: &str = "/var/log/pods";

/// containerd keeps the configuration of each task below `NAMESPACE/ID` here.
const TASKS: &str = "/run/containerd/io.containerd.runtime.v2.task/k8s.io";

/// The machine's files, as a container with the machine's processes sees them.
const MACHINE: &str = "/proc/1/root";

/// The annotation with the name that a container has in its pod.
const NAME: &str = "io.kubernetes.cri.container-name";

/// Gives each database its stable name. Databases of one name are numbered from the second on, in the order of
/// their pids.
pub(crate) fn give(host: &Host, databases: &mut [Database]) {
    for place in 0..databases.len() {
        let own = name(&databases[place], pod_names(host, &databases[place]).as_ref(), |pid| {
            port(host, pid)
        });
        let taken = |name: &str| databases[..place].iter().any(|other| other.name == name);
        let numbered = (2..).map(|number| format!("{own}#{number}"));
        let free = std::iter::once(own.clone()).chain(numbered).find(|name| !taken(name));
        databases[place].name = free.unwrap_or(own);
    }
}

/// In a pod, `NAMESPACE/POD/CONTAINER`, or `NAMESPACE/POD/ENGINE` where the container's name is not known.
/// Elsewhere `ENGINE@PLACE`: its port, else its data directory, else the container's id, else `unknown`.
fn name(
    database: &Database,
    names: Option<&PodNames>,
    port: impl FnOnce(u32) -> Option<u16>,
) -> String {
    let engine = &database.engine;
    if let Some(PodNames { namespace, pod, container }) = names {
        let last = if container.is_empty() { engine } else { container };
        return format!("{namespace}/{pod}/{last}");
    }
    let directory = || database.data_directory.value().cloned();
    let container = || database.container.as_ref().map(|container| container.id.clone());
    let told = port(database.pid).map(|port| port.to_string());
    let place = told.or_else(directory).or_else(container).unwrap_or_else(|| "unknown".to_owned());
    format!("{engine}@{place}")
}

/// The lowest TCP port on which a process listens.
fn port(host: &Host, pid: u32) -> Option<u16> {
    let ports = host.observe(&format!("listening_ports:{pid}"), || listening_ports(host, pid));
    ports.into_value()?.first().copied()
}

/// The names of the pod and container that a database runs in; `None` where it is in no pod that the
/// kubelet's folders name.
pub fn pod_names(host: &Host, database: &Database) -> Option<PodNames> {
    let uid = &database.pod.as_ref()?.uid;
    let folders = host.names(LOGS).into_value()?;
    let folder = folders.iter().find(|folder| folder.rsplit('_').next() == Some(uid))?;
    // Neither a namespace nor a pod has an underscore in its name.
    let (namespace, pod) = folder.strip_suffix(&format!("_{uid}"))?.split_once('_')?;
    let containers = host.names(&format!("{LOGS}/{folder}")).into_value().unwrap_or_default();
    let container = match &containers[..] {
        [only] => only.clone(),
        _ => runtime_name(host, database, &containers).unwrap_or_default(),
    };
    Some(PodNames { namespace: namespace.to_owned(), pod: pod.to_owned(), container })
}

/// The name of the container, from the runtime's configuration of it, if the pod has one of that name.
fn runtime_name(host: &Host, database: &Database, among: &[String]) -> Option<String> {
    let id = &database.container.as_ref()?.id;
    if !id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let line = format!("{TASKS}/{id}/config.json");
    // Nothing of the file but the one annotation is kept. In a container it is below process 1.
    let name = |text: &str| annotation(text).unwrap_or_default();
    let own = host.map_text(&line, |text| name(&text));
    let elsewhere = || host.map_text(&format!("{MACHINE}{line}"), |text| name(&text));
    own.or_else(elsewhere).into_value().filter(|name| among.contains(name))
}

fn annotation(config: &str) -> Option<String> {
    let config: serde_json::Value = serde_json::from_str(config).ok()?;
    Some(config["annotations"][NAME].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading;
    use untax_core::database::{Container, Pod};
    use untax_host::Record;

    fn database(uid: &str, id: &str) -> Database {
        let mut database = Database::unknown("postgres", 7, "not read");
        database.pod = Some(Pod { uid: uid.to_owned(), qos: "burstable".to_owned() });
        let runtime = "containerd".to_owned();
        database.container = Some(Container { id: id.to_owned(), runtime });
        database
    }

    fn host() -> Host {
        let config = format!(r#"{{"annotations":{{"{NAME}":"server","password":"secret"}}}}"#);
        // What a capture would hold of the configuration is the name alone.
        assert_eq!(annotation(&config).unwrap(), "server");
        let record = Record::default()
            .with_file("/var/log/pods/db_pg-0_uid-1/postgres/0.log", "")
            .with_file("/var/log/pods/db_pg-1_uid-2/server/0.log", "")
            .with_file("/var/log/pods/db_pg-1_uid-2/exporter/0.log", "")
            .with_file(&format!("{TASKS}/abc/config.json"), "server")
            .with_file(&format!("{TASKS}/bad/config.json"), "elsewhere");
        Host::from_record(record)
    }

    #[test]
    fn the_kubelets_folders_name_pod_and_container() {
        let names = pod_names(&host(), &database("uid-1", "x")).unwrap();
        assert_eq!(names.namespace, "db");
        assert_eq!((names.pod.as_str(), names.container.as_str()), ("pg-0", "postgres"));
        assert!(pod_names(&host(), &database("uid-9", "x")).is_none(), "of no folder");
    }

    #[test]
    fn of_several_containers_the_runtime_says_which_one() {
        let container = |id| pod_names(&host(), &database("uid-2", id)).unwrap().container;
        assert_eq!(container("abc"), "server");
        assert_eq!(container("bad"), "", "no container of that pod");
        assert_eq!(container("../abc"), "");
        assert_eq!(container("none"), "");
    }

    #[test]
    fn a_name_never_holds_a_pid() {
        let mut database = Database::unknown("postgres", 4012, "not read");
        assert_eq!(name(&database, None, |_| Some(5432)), "postgres@5432");
        assert_eq!(name(&database, None, |_| None), "postgres@unknown");
        database.data_directory = Reading::Present("/var/lib/pg".to_owned());
        assert_eq!(name(&database, None, |_| None), "postgres@/var/lib/pg");
    }

    #[test]
    fn a_database_of_a_pod_has_the_names_of_the_cluster() {
        let names = |container: &str| PodNames {
            namespace: "db".to_owned(),
            pod: "pg-0".to_owned(),
            container: container.to_owned(),
        };
        let database = Database::unknown("postgres", 4012, "not read");
        let of = |container| name(&database, Some(&names(container)), |_| Some(5432));
        assert_eq!(of("server"), "db/pg-0/server");
        assert_eq!(of(""), "db/pg-0/postgres");
    }

    #[test]
    fn two_of_one_name_are_told_apart() {
        let mut all = [7, 8, 9].map(|pid| Database::unknown("postgres", pid, "not read"));
        all[1].data_directory = Reading::Present("/var/lib/pg".to_owned());
        give(&host(), &mut all);
        let names = all.map(|database| database.name);
        assert_eq!(names, ["postgres@unknown", "postgres@/var/lib/pg", "postgres@unknown#2"]);
    }
}
