//! A service by chains of iptables (its nft variant), as kube-proxy makes them in mode `iptables`.

use super::ends::Ends;
use super::kind::{Counts, PathKind};
use super::parts::pods_on_one_node;
use super::services::{SERVICE, load_iptables};
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "services-iptables",
    summary: "two pods, routed; the client uses the last of so many services in chains of iptables-nft",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "1"),
        ("rules", "as kube-proxy writes them in mode iptables, loaded by iptables-nft"),
    ],
    counts: Some(Counts::Services),
    build,
};

fn build(services: u32) -> Result<Ends, SceneError> {
    let [client, server, node] = pods_on_one_node()?;
    load_iptables(&node, "nft", services)?;
    Ok(Ends::new(client, server, SERVICE, vec![node]))
}
