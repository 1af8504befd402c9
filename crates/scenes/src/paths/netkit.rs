//! Two pods by netkit pairs, which take the place of veth pairs since kernel 6.7.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{
    CLIENT, SERVER, client, gateway, node, of_kind, pod_address, pod_link, pod_routes,
};
use crate::SceneError;
use crate::namespace::Namespace;

pub(super) const PATH: PathKind = PathKind {
    id: "netkit",
    summary: "two pods by netkit pairs, routed by their node",
    configuration: &[("links", "netkit mode l3"), ("ip_forward", "1")],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    let (client, server, node) = (client()?, Namespace::make()?, node()?);
    for (pod, number) in [(&client, CLIENT), (&server, SERVER)] {
        let (link, address, place) = (pod_link(number), pod_address(number), pod.path());
        let add = format!("link add name {link} type netkit peer name eth0 netns {place}\n");
        of_kind("netkit", node.ip(&add))?;
        node.ip(&gateway(&link, address))?;
        pod.ip(&pod_routes(address))?;
    }
    Ok(Ends::new(client, server, pod_address(SERVER), vec![node]))
}
