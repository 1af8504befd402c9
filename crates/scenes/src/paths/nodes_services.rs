//! Pods on two nodes; the client uses a service by chains of iptables on its node.

use super::ends::Ends;
use super::kind::{Counts, PathKind};
use super::parts::{WIRE, node_address, pods_on_two_nodes, route_between};
use super::services::{SERVICE, load_iptables};
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "nodes-services",
    summary: "pods on two nodes, routed; the client uses the last of so many services in chains of \
              iptables-nft",
    configuration: &[
        ("links", "veth, veth between the nodes"),
        ("ip_forward", "1"),
        ("rules", "as kube-proxy writes them in mode iptables, on both nodes"),
    ],
    counts: Some(Counts::Services),
    build,
};

fn build(services: u32) -> Result<Ends, SceneError> {
    let [client, server, one, two] = pods_on_two_nodes()?;
    route_between(&one, &two, WIRE, node_address)?;
    for node in [&one, &two] {
        load_iptables(node, "nft", services)?;
    }
    Ok(Ends::new(client, server, SERVICE, vec![one, two]))
}
