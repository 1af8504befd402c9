//! Pods on two nodes that route between them.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{SERVER, WIRE, node_address, pod_address, pods_on_two_nodes, route_between};
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "nodes-routed",
    summary: "pods on two nodes, routed by both, without a firewall rule",
    configuration: &[("links", "veth, veth between the nodes"), ("ip_forward", "1")],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    let [client, server, one, two] = pods_on_two_nodes()?;
    route_between(&one, &two, WIRE, node_address)?;
    Ok(Ends::new(client, server, pod_address(SERVER), vec![one, two]))
}
