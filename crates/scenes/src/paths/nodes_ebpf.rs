//! Pods on two nodes whose eBPF programs hand packets to the wire and to the pods.

use super::bpf::{Hop, Programs};
use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{
    CLIENT, SERVER, WIRE, attach, client, node_address, pod_address, pod_link, route_between, wire,
};
use crate::SceneError;
use crate::namespace::Namespace;

pub(super) const PATH: PathKind = PathKind {
    id: "nodes-ebpf",
    summary: "eBPF host routing, pods on two nodes: programs put packets onto the wire and into the pod",
    configuration: &[
        ("links", "veth, veth between the nodes"),
        ("ip_forward", "0"),
        ("program", "tc ingress of all links, bpf_redirect_neigh and bpf_redirect_peer"),
    ],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    let [one, two] = [Namespace::make()?, Namespace::make()?];
    wire(&one, &two)?;
    let (client, server) = (client()?, Namespace::make()?);
    attach(&one, &client, CLIENT)?;
    attach(&two, &server, SERVER)?;
    // A program hands a packet to a link; the route says which neighbour there gets it.
    route_between(&one, &two, WIRE, node_address)?;
    let mut ends = Ends::new(client, server, pod_address(SERVER), Vec::new());
    for (node, own, other) in [(one, CLIENT, SERVER), (two, SERVER, CLIENT)] {
        let hops = [
            (pod_address(own), Hop::IntoPeer(pod_link(own))),
            (pod_address(other), Hop::OutOfLink(WIRE.to_owned())),
        ];
        let mut programs = Programs::load()?;
        programs.route(&node, &hops, &[pod_link(own), WIRE.to_owned()])?;
        ends.rest.namespaces.push(node);
        ends.rest.programs.push(programs);
    }
    Ok(ends)
}
