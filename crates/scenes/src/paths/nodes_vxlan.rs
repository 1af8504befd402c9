//! Pods on two nodes with a VXLAN between them.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{WIRE, pods_over};
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "nodes-vxlan",
    summary: "pods on two nodes, each packet wrapped into VXLAN between them",
    configuration: &[
        ("links", "veth, vxlan, veth between the nodes"),
        ("ip_forward", "1"),
        ("mtu of pods", "1450"),
    ],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    pods_over("vxlan", |other| format!("id 1 dstport 4789 remote {other} dev {WIRE}"))
}
