//! Two pods whose node's eBPF programs hand packets from one to the other.

use super::bpf::{Hop, Programs};
use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{CLIENT, SERVER, attach, client, pod_address, pod_link};
use crate::SceneError;
use crate::namespace::Namespace;

pub(super) const PATH: PathKind = PathKind {
    id: "ebpf-routed",
    summary: "eBPF host routing, two namespaces: programs put packets of one pod into the other",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "0"),
        ("program", "tc ingress of both links, bpf_redirect_peer"),
    ],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    // The node forwards nothing by itself: what comes through was handed over by a program.
    let (client, server, node) = (client()?, Namespace::make()?, Namespace::make()?);
    attach(&node, &client, CLIENT)?;
    attach(&node, &server, SERVER)?;
    let links = [pod_link(CLIENT), pod_link(SERVER)];
    let hops = [CLIENT, SERVER].map(|pod| (pod_address(pod), Hop::IntoPeer(pod_link(pod))));
    let mut programs = Programs::load()?;
    programs.route(&node, &hops, &links)?;
    let mut ends = Ends::new(client, server, pod_address(SERVER), vec![node]);
    ends.rest.programs.push(programs);
    Ok(ends)
}
