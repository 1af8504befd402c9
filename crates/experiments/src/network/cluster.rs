//! The same loads between two pods of a cluster: what its own paths cost.

use super::peers::Kind;
use super::workloads::{self, Load};
use crate::cluster::{ClusterArguments, Pod, PodExchange, port, service, service_port};
use crate::platform::{Arm, Cell, Family, Needs, Placement, Running, Trouble, Workload};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use untax_scenes::{Cluster, ClusterNode, SceneError};
use untax_trials::Interrupt;

/// How long pods may take to be ready: an image may have to be pulled.
const PATIENCE_S: u32 = 180;

const SERVER: &str = "server";
/// A server with the node's network; clients that share it run in the same pod.
const SERVER_HOST: &str = "server-host";

/// A path between two pods.
struct PathOf {
    id: &'static str,
    summary: &'static str,
    /// The client's pod.
    client: &'static str,
    to: To,
}

/// What clients are pointed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// The server with the node's network.
    Host,
    /// The server's own address.
    Pod,
    /// The address of its service.
    Service,
    /// A port of its node.
    NodePort,
}

/// All paths, the baseline first; those from another node last.
const PATHS: [PathOf; 7] = [
    PathOf {
        id: "host-network",
        summary: "two pods with the network of one node",
        client: SERVER_HOST,
        to: To::Host,
    },
    PathOf {
        id: "pod-to-pod",
        summary: "two pods on one node, by the server's address",
        client: "client",
        to: To::Pod,
    },
    PathOf {
        id: "cluster-ip",
        summary: "two pods on one node, by the address of a service (ClusterIP)",
        client: "client",
        to: To::Service,
    },
    PathOf {
        id: "node-port",
        summary: "two pods on one node, by a port of the node (NodePort)",
        client: "client",
        to: To::NodePort,
    },
    PathOf {
        id: "host-network-nodes",
        summary: "two pods with the networks of two nodes",
        client: "client-host-far",
        to: To::Host,
    },
    PathOf {
        id: "pod-to-pod-nodes",
        summary: "two pods on two nodes, by the server's address",
        client: "client-far",
        to: To::Pod,
    },
    PathOf {
        id: "cluster-ip-nodes",
        summary: "two pods on two nodes, by the address of a service (ClusterIP)",
        client: "client-far",
        to: To::Service,
    },
];

/// `bench network --cluster` as the frame sees it.
pub(super) struct ClusterPaths {
    arguments: ClusterArguments,
    up: Option<Result<Up, String>>,
}

/// The pods, when they are up.
struct Up {
    cluster: Rc<Cluster>,
    nodes: Vec<ClusterNode>,
    /// The address of each goal.
    addresses: BTreeMap<&'static str, Ipv4Addr>,
    service: serde_json::Value,
}

impl ClusterPaths {
    pub(super) fn new(arguments: ClusterArguments) -> Self {
        Self { arguments, up: None }
    }

    fn up(&mut self) -> &Result<Up, String> {
        let arguments = &self.arguments;
        self.up.get_or_insert_with(|| {
            let made = arguments.make().and_then(|cluster| Up::make(arguments, cluster));
            made.map_err(|error| match Trouble::of(&error) {
                Trouble::Failed(why) => why,
                interrupted @ Trouble::Interrupted(_) => interrupted.to_string(),
            })
        })
    }
}

impl Up {
    fn make(arguments: &ClusterArguments, cluster: Cluster) -> Result<Self, SceneError> {
        let nodes = cluster.nodes()?;
        let Some(first) = nodes.first() else {
            return Err(SceneError::Cluster {
                why: "no node of the cluster takes pods".to_owned(),
            });
        };
        let pod = |name: &str, node, host_network| Pod {
            name: name.to_owned(),
            node,
            host_network,
            runtime_class: None,
        };
        let mut pods = vec![
            pod(SERVER, &first.name, false),
            pod(SERVER_HOST, &first.name, true),
            pod("client", &first.name, false),
        ];
        if let Some(second) = nodes.get(1) {
            pods.push(pod("client-far", &second.name, false));
            pods.push(pod("client-host-far", &second.name, true));
        }
        let template = arguments.template();
        let mut objects: Vec<_> = pods.iter().map(|pod| pod.object(&template)).collect();
        objects.push(service(SERVER));
        cluster.apply(&objects)?;
        for pod in &pods {
            cluster.wait_for(&pod.name, PATIENCE_S)?;
        }
        let address = |value: &serde_json::Value, what: &str| {
            let text = value.as_str().unwrap_or_default();
            text.parse::<Ipv4Addr>().map_err(|_| SceneError::Cluster {
                why: format!("{what} has no IPv4 address ('{text}'): this bench speaks IPv4 alone"),
            })
        };
        let (server, service) = (cluster.get("pod", SERVER)?, cluster.get("service", SERVER)?);
        let addresses = BTreeMap::from([
            (HOST, address(&server["status"]["hostIP"], "the node")?),
            (POD, address(&server["status"]["podIP"], "the server's pod")?),
            (SERVICE, address(&service["spec"]["clusterIP"], "the service")?),
        ]);
        Ok(Self { cluster: Rc::new(cluster), nodes, addresses, service })
    }

    /// Where clients of a goal connect to.
    fn goal(&self, to: To, kind: Kind) -> Result<(Ipv4Addr, u16), Trouble> {
        let of = |name: &str| {
            let address = self.addresses.get(name).copied();
            address.ok_or_else(|| Trouble::Failed(format!("there is no address of {name}")))
        };
        Ok(match to {
            To::Host => (of(HOST)?, port(kind)),
            To::Pod => (of(POD)?, port(kind)),
            To::Service => (of(SERVICE)?, port(kind)),
            To::NodePort => {
                let port = service_port(&self.service, kind);
                (of(HOST)?, port.ok_or_else(|| Trouble::Failed("no port on nodes".to_owned()))?)
            }
        })
    }
}

const HOST: &str = "host";
const POD: &str = "pod";
const SERVICE: &str = "service";

impl Family for ClusterPaths {
    fn arms(&mut self) -> Vec<Arm> {
        let up = self.up();
        let arm = |path: &PathOf| {
            let arm = Arm::new(path.id, path.summary);
            let is_far = path.client.ends_with("-far");
            match up {
                Err(why) => arm.cannot(why.clone()),
                Ok(up) if is_far && up.nodes.len() < 2 => {
                    arm.cannot("the cluster has one node that takes pods")
                }
                Ok(up) => up.nodes.iter().take(1 + usize::from(is_far)).fold(arm, |arm, node| {
                    let ClusterNode { name, kernel, runtime } = node;
                    arm.with("node", format!("{name} (kernel {kernel}, {runtime})"))
                }),
            }
        };
        PATHS.iter().map(arm).collect()
    }

    fn workloads(&mut self) -> Vec<Workload> {
        let all = workloads::all().into_iter();
        let exchanged =
            all.filter(|work| matches!(Load::of(&work.id), Some(Load::Exchange { .. })));
        // Servers and clients have the first CPU of their node.
        let pinned = |work| Workload { placements: vec![Placement::OneCpu], ..work };
        exchanged.map(pinned).collect()
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
        let path = PATHS.iter().find(|path| path.id == arm.id);
        let (Some(path), Some(Load::Exchange { kind, connections })) =
            (path, Load::of(&cell.workload.id))
        else {
            return Err(Trouble::Failed(format!("there is no {} in a cluster", cell.workload.id)));
        };
        let (address, port) = up.goal(path.to, kind)?;
        Ok(Box::new(PodExchange {
            cluster: Rc::clone(&up.cluster),
            template,
            pod: path.client.to_owned(),
            kind,
            connections,
            address,
            port,
            seconds: cell.workload.trial.as_secs_f64(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::scripted;
    use crate::platform::Cpus;

    fn cell(id: &str, family: &mut ClusterPaths) -> Cell {
        let workload = family.workloads().into_iter().find(|work| work.id == id).unwrap();
        Cell { workload, placement: Placement::OneCpu, cpus: Cpus::default() }
    }

    #[test]
    fn clients_in_pods_reach_the_server_by_the_address_of_each_path() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ClusterArguments {
            cluster: true,
            image: Some("registry.example/untax:1".to_owned()),
            ..ClusterArguments::default()
        };
        let up = Up::make(&arguments, scripted::cluster(folder.path()));
        let mut family = ClusterPaths { arguments, up: Some(Ok(up.unwrap())) };
        let arms = family.arms();
        let able: Vec<&str> =
            arms.iter().filter(|arm| arm.cannot.is_none()).map(|arm| arm.id.as_str()).collect();
        assert_eq!(able, ["host-network", "pod-to-pod", "cluster-ip", "node-port"]);
        assert!(arms[4].cannot.as_ref().unwrap().contains("one node"));
        let (interrupt, cell) = (Interrupt::default(), cell("rr", &mut family));
        for arm in arms.iter().filter(|arm| arm.cannot.is_none()) {
            let mut running = family.start(arm, &cell, &interrupt).unwrap();
            assert!((running.trial(&interrupt).unwrap().value - 20.0).abs() < 1e-9, "{}", arm.id);
        }
        let namespace = match &family.up {
            Some(Ok(up)) => up.cluster.namespace().to_owned(),
            _ => String::new(),
        };
        drop(family);
        let log = scripted::log(folder.path());
        let clients: Vec<&str> =
            log.lines().filter(|line| line.contains("__network-client")).collect();
        let of = |place: usize, pod: &str, address: &str, port: u16| {
            let line = clients[place];
            assert!(line.contains(&format!("exec {pod} ")), "{line}");
            let to = format!(r#""address":"{address}","port":{port}"#);
            assert!(line.contains(&to), "{line}");
        };
        of(0, "server-host", "192.0.2.1", 27_101);
        of(1, "client", "198.51.100.7", 27_101);
        of(2, "client", "203.0.113.5", 27_101);
        of(3, "client", "192.0.2.1", 30_001);
        assert!(log.trim_end().ends_with(&format!("delete namespace {namespace} --wait=false")));
    }

    #[test]
    fn only_loads_of_our_own_are_run_in_pods() {
        let mut family = ClusterPaths::new(ClusterArguments::default());
        let ids: Vec<String> = family.workloads().into_iter().map(|work| work.id).collect();
        assert_eq!(ids, ["rr", "crr", "rr16", "udp-rr", "stream"]);
    }
}
