//! The names of pods and containers of this node, from files: no API server is asked.

use crate::identity::PodNames;
use untax_core::Database;
use untax_host::Host;

/// The kubelet keeps the logs of each container in `NAMESPACE_POD_UID/CONTAINER` here.
const LOGS: &str = "/var/log/pods";

/// containerd keeps the configuration of each task below `NAMESPACE/ID` here.
const TASKS: &str = "/run/containerd/io.containerd.runtime.v2.task/k8s.io";

/// The machine's files, as a container with the machine's processes sees them.
const MACHINE: &str = "/proc/1/root";

/// The annotation with the name that a container has in its pod.
const NAME: &str = "io.kubernetes.cri.container-name";

/// The names of the pod and container that a database runs in; `None` where it is in no pod that the
/// kubelet's folders name.
pub(crate) fn pod_names(host: &Host, database: &Database) -> Option<PodNames> {
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
}
