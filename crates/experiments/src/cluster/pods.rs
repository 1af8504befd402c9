//! The objects that a bench makes in a cluster.

use super::template::Template;
use crate::network::peers::{Kind, Place, SERVER, ServerSpec};
use serde_json::{Value, json};

/// Every kind of exchange with the name of its container and of its port.
const KINDS: [(Kind, &str); 4] = [
    (Kind::Tcp, "tcp"),
    (Kind::TcpConnect, "connect"),
    (Kind::Udp, "udp"),
    (Kind::Stream, "stream"),
];

/// The first of their ports: none that a well-known service has, below those that kernels and clusters give
/// out by themselves.
const FIRST_PORT: u16 = 27_101;

/// The label of the pods behind the service.
const LABEL: &str = "untax-bench";

/// The CPU that servers and clients have: the first of their node, as in benches of one machine.
pub(crate) const CPU: u32 = 0;

/// The port of a kind.
pub(crate) fn port(kind: Kind) -> u16 {
    let place = KINDS.iter().position(|(known, _)| *known == kind).unwrap_or(0);
    FIRST_PORT + place as u16
}

/// The container in which programs are started.
pub(crate) const CONTAINER: &str = KINDS[0].1;

/// A pod with servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pod<'a> {
    pub(crate) name: String,
    /// Where it runs.
    pub(crate) node: &'a str,
    /// Whether it has the network of its node.
    pub(crate) host_network: bool,
    /// Its runtime class; that of the cluster where there is none.
    pub(crate) runtime_class: Option<&'a str>,
}

impl Pod<'_> {
    /// As the cluster takes it.
    pub(crate) fn object(&self, template: &Template) -> Value {
        let containers: Vec<Value> =
            KINDS.iter().map(|(kind, name)| container(template, *kind, name)).collect();
        let volume = |(place, path): (usize, &String)| json!({"name": format!("mount-{place}"), "hostPath": {"path": path}});
        let volumes: Vec<Value> = template.mounts.iter().enumerate().map(volume).collect();
        let mut spec = json!({
            "nodeName": self.node,
            "hostNetwork": self.host_network,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 0,
            "containers": containers,
            "volumes": volumes,
        });
        if let Some(class) = self.runtime_class {
            spec["runtimeClassName"] = json!(class);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "labels": {LABEL: self.name}},
            "spec": spec,
        })
    }
}

fn container(template: &Template, kind: Kind, name: &str) -> Value {
    let place = Place { cpus: vec![CPU], ..Place::default() };
    let spec = ServerSpec { kind, place, port: port(kind), asked: false };
    let spec = serde_json::to_string(&spec).unwrap_or_default();
    let mount = |(place, path): (usize, &String)| json!({"name": format!("mount-{place}"), "mountPath": path, "readOnly": true});
    let mounts: Vec<Value> = template.mounts.iter().enumerate().map(mount).collect();
    let mut container = json!({
        "name": name,
        "image": template.image,
        "imagePullPolicy": "IfNotPresent",
        // 0: in a pod it has no parent to be tied to.
        "command": [template.program, SERVER.name, "0", spec],
        "volumeMounts": mounts,
    });
    if kind != Kind::Udp {
        container["startupProbe"] =
            json!({"tcpSocket": {"port": port(kind)}, "periodSeconds": 1, "failureThreshold": 60});
    }
    container
}

/// The service of a pod: it has an address in the cluster, and ports on every node.
pub(crate) fn service(pod: &str) -> Value {
    let ports: Vec<Value> = KINDS
        .iter()
        .map(|(kind, name)| {
            let protocol = if *kind == Kind::Udp { "UDP" } else { "TCP" };
            json!({"name": name, "protocol": protocol, "port": port(*kind)})
        })
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": pod},
        "spec": {"type": "NodePort", "selector": {LABEL: pod}, "ports": ports},
    })
}

/// The port on nodes that leads to a kind of a service.
pub(crate) fn service_port(service: &Value, kind: Kind) -> Option<u16> {
    let ports = service["spec"]["ports"].as_array()?;
    let of_kind = ports.iter().find(|one| one["port"] == port(kind))?;
    u16::try_from(of_kind["nodePort"].as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_a_server_of_each_kind_on_a_port_of_its_own() {
        let pod = Pod {
            name: "server".to_owned(),
            node: "a",
            host_network: true,
            runtime_class: Some("gvisor"),
        };
        let object = pod.object(&Template::example());
        let spec = &object["spec"];
        assert_eq!((&spec["nodeName"], &spec["runtimeClassName"]), (&json!("a"), &json!("gvisor")));
        let containers = spec["containers"].as_array().unwrap();
        assert_eq!(containers.len(), KINDS.len());
        for (container, (kind, _)) in containers.iter().zip(KINDS) {
            let command = container["command"].as_array().unwrap();
            let server: ServerSpec =
                serde_json::from_str(command.last().unwrap().as_str().unwrap()).unwrap();
            assert_eq!((server.kind, server.port, server.asked), (kind, port(kind), false));
            assert_eq!(container["volumeMounts"][0]["mountPath"], "/usr");
        }
        let plain = Pod { runtime_class: None, ..pod };
        assert!(plain.object(&Template::example())["spec"].get("runtimeClassName").is_none());
    }

    #[test]
    fn the_port_on_nodes_is_that_of_the_kind() {
        let mut service = service("server");
        for (place, port) in service["spec"]["ports"].as_array_mut().unwrap().iter_mut().enumerate()
        {
            port["nodePort"] = json!(30_000 + place);
        }
        assert_eq!(service_port(&service, Kind::Tcp), Some(30_000));
        assert_eq!(service_port(&service, Kind::Udp), Some(30_002));
        assert_eq!(service_port(&json!({}), Kind::Udp), None);
    }
}
