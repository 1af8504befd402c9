//! Two pods whose node routes between their links.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{SERVER, pod_address, pods_on_one_node};
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "routed",
    summary: "two pods by veth pairs, routed by their node, without a firewall rule",
    configuration: &[("links", "veth"), ("ip_forward", "1")],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    let [client, server, node] = pods_on_one_node()?;
    Ok(Ends::new(client, server, pod_address(SERVER), vec![node]))
}
