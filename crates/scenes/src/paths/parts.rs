//! What paths are built of: pods, nodes, and a wire between nodes.

use super::ends::Ends;
use super::kind::PORT;
use crate::SceneError;
use crate::namespace::Namespace;
use std::net::Ipv4Addr;

/// What a machine says whose kernel, or whose `ip`, has no links of a kind.
pub(super) fn of_kind<T>(kind: &str, made: Result<T, SceneError>) -> Result<T, SceneError> {
    made.map_err(|error| match error {
        SceneError::Failed { output_end, .. } => {
            let why = output_end.split(" | ").next().unwrap_or_default().to_owned();
            SceneError::Lacking { what: format!("links of kind {kind}"), why }
        }
        other => other,
    })
}

/// The pods of a path: the number is a part of its address and of its link's name.
pub(super) const CLIENT: u8 = 1;
pub(super) const SERVER: u8 = 2;

/// The address of a pod.
pub(super) fn pod_address(pod: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 244, pod, 2)
}

/// The gateway of every pod: the near end of its own link. No other address of the node is needed.
const GATEWAY: &str = "169.254.1.1";

/// The pod's link at its node.
pub(super) fn pod_link(pod: u8) -> String {
    format!("pod{pod}")
}

/// What pods need of a node whose kernel forwards their packets.
pub(super) const FORWARDING: &str = "echo 1 >/proc/sys/net/ipv4/ip_forward";

/// What every client needs: ports for connections that live for one request. With 64,000 ports that may
/// be used again a second after their end, a client may make that many each second.
const PORTS: &str = "echo 1024 65535 >/proc/sys/net/ipv4/ip_local_port_range
    echo 7000 >/proc/sys/net/ipv4/ip_local_reserved_ports
    echo 1 >/proc/sys/net/ipv4/tcp_tw_reuse";

/// A namespace for clients.
pub(super) fn client() -> Result<Namespace, SceneError> {
    let client = Namespace::make()?;
    client.sh(PORTS)?;
    Ok(client)
}

/// A node whose kernel forwards packets.
pub(super) fn node() -> Result<Namespace, SceneError> {
    let node = Namespace::make()?;
    node.sh(FORWARDING)?;
    Ok(node)
}

/// Ties a namespace to a node by a pair of virtual links, and routes all its packets through it.
pub(super) fn attach(node: &Namespace, pod: &Namespace, number: u8) -> Result<(), SceneError> {
    let (link, address) = (pod_link(number), pod_address(number));
    let peer = pod.path();
    node.ip(&format!("link add name {link} type veth peer name eth0 netns {peer}"))?;
    node.ip(&gateway(&link, address))?;
    pod.ip(&pod_routes(address))
}

/// What a node sets for the link of a pod.
pub(super) fn gateway(link: &str, address: Ipv4Addr) -> String {
    format!(
        "link set {link} up\n\
         address add {GATEWAY}/32 dev {link}\n\
         route add {address}/32 dev {link} scope link\n"
    )
}

/// What a pod sets for its own link.
pub(super) fn pod_routes(address: Ipv4Addr) -> String {
    format!(
        "address add {address}/32 dev eth0\n\
         link set eth0 up\n\
         route add {GATEWAY} dev eth0 scope link\n\
         route add default via {GATEWAY} dev eth0\n"
    )
}

/// Two pods on one node, which is given last.
pub(super) fn pods_on_one_node() -> Result<[Namespace; 3], SceneError> {
    let (client, server, node) = (client()?, Namespace::make()?, node()?);
    attach(&node, &client, CLIENT)?;
    attach(&node, &server, SERVER)?;
    Ok([client, server, node])
}

/// The address of a node on the wire.
pub(super) fn node_address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 50, number)
}

/// The link of nodes to each other.
pub(super) const WIRE: &str = "wire0";

/// Two nodes with a wire between them.
pub(super) fn two_nodes() -> Result<[Namespace; 2], SceneError> {
    let [one, two] = [node()?, node()?];
    wire(&one, &two)?;
    Ok([one, two])
}

/// A wire between two namespaces.
pub(super) fn wire(one: &Namespace, two: &Namespace) -> Result<(), SceneError> {
    one.ip(&format!("link add name {WIRE} type veth peer name {WIRE} netns {}", two.path()))?;
    for (node, number) in [(one, CLIENT), (two, SERVER)] {
        let address = node_address(number);
        node.ip(&format!("address add {address}/24 dev {WIRE}\nlink set {WIRE} up\n"))?;
    }
    Ok(())
}

/// A pod on each of two nodes: client, server, the client's node, the server's.
pub(super) fn pods_on_two_nodes() -> Result<[Namespace; 4], SceneError> {
    let [one, two] = two_nodes()?;
    let (client, server) = (client()?, Namespace::make()?);
    attach(&one, &client, CLIENT)?;
    attach(&two, &server, SERVER)?;
    Ok([client, server, one, two])
}

/// Routes packets for the other node's pod over the wire, or over what stands in for it.
pub(super) fn route_between(
    one: &Namespace,
    two: &Namespace,
    link: &str,
    address: impl Fn(u8) -> Ipv4Addr,
) -> Result<(), SceneError> {
    for (node, other) in [(one, SERVER), (two, CLIENT)] {
        let (pod, next) = (pod_address(other), address(other));
        node.ip(&format!("route add {pod}/32 via {next} dev {link}\n"))?;
    }
    Ok(())
}

/// The overlay's link and its addresses.
const OVERLAY: &str = "overlay0";

fn overlay_address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 255, 0, number)
}

/// Two pods whose nodes wrap each packet into one between them. `link` gives the words of `ip link add`
/// behind the kind, given the address of the other node.
pub(super) fn pods_over(kind: &str, link: impl Fn(Ipv4Addr) -> String) -> Result<Ends, SceneError> {
    let [client, server, one, two] = pods_on_two_nodes()?;
    for (node, number, other) in [(&one, CLIENT, SERVER), (&two, SERVER, CLIENT)] {
        let (words, address) = (link(node_address(other)), overlay_address(number));
        of_kind(kind, node.ip(&format!("link add name {OVERLAY} type {kind} {words}\n")))?;
        node.ip(&format!(
            "address add {address}/24 dev {OVERLAY}\n\
             link set {OVERLAY} up\n"
        ))?;
    }
    route_between(&one, &two, OVERLAY, overlay_address)?;
    // What an overlay adds to a packet must fit on the wire too.
    for pod in [&client, &server] {
        pod.ip("link set eth0 mtu 1450\n")?;
    }
    Ok(Ends::new(client, server, pod_address(SERVER), vec![one, two]))
}

/// Links of a kind that stand on one link of the client's node.
pub(super) fn links_on_one(kind: &str, mode: &str) -> Result<Ends, SceneError> {
    let (client, server, node) = (client()?, Namespace::make()?, Namespace::make()?);
    // Whatever they stand on must be up; its other end carries nothing.
    node.ip(
        "link add name base0 type veth peer name base1\nlink set base0 up\nlink set base1 up\n",
    )?;
    for (pod, number) in [(&client, CLIENT), (&server, SERVER)] {
        let (link, place, address) = (pod_link(number), pod.path(), node_address(number));
        let add = format!("link add link base0 name {link} type {kind} mode {mode}\n");
        of_kind(kind, node.ip(&add))?;
        node.ip(&format!("link set {link} netns {place} name eth0\n"))?;
        pod.ip(&format!("address add {address}/24 dev eth0\nlink set eth0 up\n"))?;
    }
    Ok(Ends::new(client, server, node_address(SERVER), vec![node]))
}

/// `10.244.2.2:7000`.
pub(super) fn backend() -> String {
    format!("{}:{PORT}", pod_address(SERVER))
}
