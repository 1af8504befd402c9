//! Pods on two nodes with Geneve between them.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::pods_over;
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "nodes-geneve",
    summary: "pods on two nodes, each packet wrapped into Geneve between them",
    configuration: &[
        ("links", "veth, geneve, veth between the nodes"),
        ("ip_forward", "1"),
        ("mtu of pods", "1450"),
    ],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    pods_over("geneve", |other| format!("id 1 remote {other} dstport 6081"))
}
