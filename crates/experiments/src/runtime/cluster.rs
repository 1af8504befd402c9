//! The runtime classes of a cluster: the same servers and work in a pod of each.

use super::repeat::Done;
use super::work::{WORK, Work, WorkKind};
use super::workloads::{self, Kind};
use crate::cluster::{ClusterArguments, Pod, PodExchange, Template, exec_own, port};
use crate::platform::{Arm, Cell, Family, Measured, Needs, Placement, Running, Trouble, Workload};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use untax_scenes::{Cluster, SceneError};
use untax_trials::Interrupt;

/// How long pods may take to be ready: an image may have to be pulled.
const PATIENCE_S: u32 = 180;

/// The arm of pods that name no class, which all others are divided by.
const DEFAULT: &str = "default";

/// The pod of all clients, of the default class.
const CLIENT: &str = "client";

/// `bench runtime --cluster` as the frame sees it.
pub(super) struct RuntimeClasses {
    arguments: ClusterArguments,
    /// The ids of arms that are compared; all if none.
    asked: Vec<String>,
    up: Option<Result<Up, String>>,
}

/// The pods, when they are up.
struct Up {
    cluster: Rc<Cluster>,
    node: String,
    /// The address of each arm's pod, or why it has none.
    servers: BTreeMap<String, Result<Ipv4Addr, String>>,
}

/// The pod of an arm.
fn pod_name(arm: &str) -> String {
    format!("server-{arm}")
}

fn why(error: &SceneError) -> String {
    match Trouble::of(error) {
        Trouble::Failed(why) => why,
        interrupted @ Trouble::Interrupted(_) => interrupted.to_string(),
    }
}

impl RuntimeClasses {
    pub(super) fn new(arguments: ClusterArguments, asked: Vec<String>) -> Self {
        Self { arguments, asked, up: None }
    }

    fn up(&mut self) -> &Result<Up, String> {
        let (arguments, asked) = (&self.arguments, &self.asked);
        self.up.get_or_insert_with(|| {
            let made = arguments.make();
            let made = made.and_then(|cluster| Up::make(&arguments.template(), asked, cluster));
            made.map_err(|error| why(&error))
        })
    }
}

impl Up {
    fn make(template: &Template, asked: &[String], cluster: Cluster) -> Result<Self, SceneError> {
        let nodes = cluster.nodes()?;
        let Some(node) = nodes.first() else {
            return Err(SceneError::Cluster {
                why: "no node of the cluster takes pods".to_owned(),
            });
        };
        let client = pod(CLIENT.to_owned(), &node.name, None);
        let default = pod(pod_name(DEFAULT), &node.name, None);
        cluster.apply(&[client.object(template), default.object(template)])?;
        cluster.wait_for(CLIENT, PATIENCE_S)?;
        let mut servers = BTreeMap::new();
        servers.insert(DEFAULT.to_owned(), address(&cluster, DEFAULT).map_err(|e| why(&e)));
        for class in cluster.runtime_classes()? {
            let is_asked = asked.is_empty() || asked.contains(&class);
            let made = || {
                let pod = pod(pod_name(&class), &node.name, Some(&class));
                let object = pod.object(template);
                cluster.apply(&[object]).and_then(|()| address(&cluster, &class))
            };
            let server = if is_asked {
                made().map_err(|error| why(&error))
            } else {
                Err("not asked for".to_owned())
            };
            servers.insert(class, server);
        }
        let node = format!("{} (kernel {}, {})", node.name, node.kernel, node.runtime);
        Ok(Self { cluster: Rc::new(cluster), node, servers })
    }
}

fn pod<'a>(name: String, node: &'a str, runtime_class: Option<&'a str>) -> Pod<'a> {
    Pod { name, node, host_network: false, runtime_class }
}

/// The address of an arm's pod, when it is ready.
fn address(cluster: &Cluster, arm: &str) -> Result<Ipv4Addr, SceneError> {
    let name = pod_name(arm);
    cluster.wait_for(&name, PATIENCE_S)?;
    let pod = cluster.get("pod", &name)?;
    let text = pod["status"]["podIP"].as_str().unwrap_or_default().to_owned();
    let no_address = || SceneError::Cluster {
        why: format!("{name} has no IPv4 address ('{text}'): this bench speaks IPv4 alone"),
    };
    text.parse().map_err(|_| no_address())
}

/// Whether work can be done in a pod that has nothing but this program.
fn is_own(kind: Kind) -> bool {
    match kind {
        Kind::Exchange(_) => true,
        Kind::Own(work) => !matches!(work, WorkKind::Write(_) | WorkKind::Read(_)),
        _ => false,
    }
}

impl Family for RuntimeClasses {
    fn arms(&mut self) -> Vec<Arm> {
        let up = match self.up() {
            Ok(up) => up,
            Err(why) => {
                return vec![Arm::new(DEFAULT, "pods that name no class").cannot(why.clone())];
            }
        };
        let default = up.servers.get_key_value(DEFAULT).into_iter();
        let others = up.servers.iter().filter(|(name, _)| *name != DEFAULT);
        let arm = |(name, server): (&String, &Result<Ipv4Addr, String>)| {
            let summary = match name.as_str() {
                DEFAULT => "pods that name no class".to_owned(),
                class => format!("pods of the runtime class {class}"),
            };
            let arm = Arm::new(name, &summary).with("node", up.node.clone());
            match server {
                Ok(_) => arm,
                Err(why) => arm.cannot(why.clone()),
            }
        };
        default.chain(others).map(arm).collect()
    }

    fn workloads(&mut self) -> Vec<Workload> {
        let all = workloads::all(None).into_iter().filter(|(_, kind)| is_own(*kind));
        all.map(|(work, kind)| Workload {
            // Servers, clients and work have the first CPU of their node.
            placements: vec![Placement::OneCpu],
            is_usual: work.is_usual || matches!(kind, Kind::Exchange(_)),
            is_quick: work.is_quick || work.id == "tcp-rr",
            ..work
        })
        .collect()
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn start(
        &mut self,
        arm: &Arm,
        cell: &Cell,
        _: &Interrupt,
    ) -> Result<Box<dyn Running>, Trouble> {
        let template = self.arguments.template();
        let up = self.up().as_ref().map_err(|why| Trouble::Failed(why.clone()))?;
        let server = up.servers.get(&arm.id);
        let unknown = || Trouble::Failed(format!("there is no {}", arm.id));
        let address = server.ok_or_else(unknown)?.clone().map_err(Trouble::Failed)?;
        let known = workloads::all(None).into_iter();
        let kind = known.into_iter().find(|(work, _)| work.id == cell.workload.id);
        let seconds = cell.workload.trial.as_secs_f64();
        let cluster = Rc::clone(&up.cluster);
        match kind.map(|(_, kind)| kind) {
            Some(Kind::Exchange(kind)) => Ok(Box::new(PodExchange {
                cluster,
                template,
                pod: CLIENT.to_owned(),
                kind,
                connections: 1,
                address,
                port: port(kind),
                seconds,
            })),
            Some(Kind::Own(kind)) => {
                Ok(Box::new(PodWork { cluster, template, pod: pod_name(&arm.id), kind, seconds }))
            }
            _ => Err(Trouble::Failed(format!("{} is not done in pods", cell.workload.id))),
        }
    }
}

/// Work in the pod of an arm.
struct PodWork {
    cluster: Rc<Cluster>,
    template: Template,
    pod: String,
    kind: WorkKind,
    seconds: f64,
}

/// Of a file in memory, bytes.
const FILE_BYTES: u64 = 64 << 20;

impl Running for PodWork {
    fn trial(&mut self, interrupt: &Interrupt) -> Result<Measured, Trouble> {
        let work = Work {
            kind: self.kind,
            seconds: self.seconds,
            directory: "/tmp".to_owned(),
            file_bytes: FILE_BYTES,
        };
        let done: Done = exec_own(&self.cluster, &self.template, &self.pod, &WORK, &work)?;
        interrupt.check()?;
        Ok(done.measured(self.kind == WorkKind::Calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::scripted;
    use crate::platform::Cpus;

    #[test]
    fn work_and_clients_run_in_pods_of_each_class_and_a_class_that_cannot_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ClusterArguments {
            cluster: true,
            image: Some("registry.example/untax:1".to_owned()),
            ..ClusterArguments::default()
        };
        let up = Up::make(&arguments.template(), &[], scripted::cluster(folder.path())).unwrap();
        let mut family = RuntimeClasses { arguments, asked: Vec::new(), up: Some(Ok(up)) };
        let arms = family.arms();
        let ids: Vec<&str> = arms.iter().map(|arm| arm.id.as_str()).collect();
        assert_eq!(ids, [DEFAULT, "gvisor", "kata"]);
        assert!(arms[2].cannot.as_ref().unwrap().contains("timed out waiting"));
        let interrupt = Interrupt::default();
        let works = family.workloads();
        let mut value = |arm: &Arm, id: &str| {
            let workload = works.iter().find(|work| work.id == id).unwrap().clone();
            let cell = Cell { workload, placement: Placement::OneCpu, cpus: Cpus::default() };
            let mut running = family.start(arm, &cell, &interrupt).unwrap();
            running.trial(&interrupt).unwrap().value
        };
        // 100 calls in half a second.
        assert!((value(&arms[1], "system-calls") - 5e6).abs() < 1.0);
        assert!((value(&arms[1], "tcp-rr") - 20.0).abs() < 1e-9);
        let log = scripted::log(folder.path());
        let ran = |pod: &str, part: &str| {
            log.lines().any(|line| line.contains(&format!("exec {pod} ")) && line.contains(part))
        };
        assert!(
            ran("server-gvisor", "__platform-work") && ran("client", "__network-client"),
            "{log}"
        );
        assert!(
            works.iter().all(|work| !work.id.starts_with("redis")),
            "pods have our program alone"
        );
    }
}
