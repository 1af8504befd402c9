//! Rules of a network policy that every packet passes.

use super::ends::Ends;
use super::kind::{Counts, PORT, PathKind};
use super::parts::{SERVER, pod_address, pods_on_one_node};
use crate::namespace::Namespace;
use crate::{SceneError, program};
use std::net::Ipv4Addr;

pub(super) const PATH: PathKind = PathKind {
    id: "policies",
    summary: "two pods, routed; each packet passes so many rules of iptables-nft before the one that \
              accepts it",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "1"),
        ("rules", "one peer each, no rule for connections that are known; policy drop"),
    ],
    counts: Some(Counts::Rules),
    build,
};

fn build(rules: u32) -> Result<Ends, SceneError> {
    let [client, server, node] = pods_on_one_node()?;
    load(&node, "", rules)?;
    Ok(Ends::new(client, server, pod_address(SERVER), vec![node]))
}

/// Loads `first`, then rules that accept one peer each: so many that match nothing, and two that do.
pub(super) fn load(node: &Namespace, first: &str, rules: u32) -> Result<(), SceneError> {
    let restore = "iptables-nft-restore";
    program::find(restore, "iptables")?;
    let server = pod_address(SERVER);
    let peer = u32::from(Ipv4Addr::new(10, 200, 0, 1));
    let unused = (0..rules).map(|number| {
        let peer = Ipv4Addr::from(peer + number);
        format!("-A FORWARD -s {peer}/32 -d {server}/32 -p tcp -m tcp --dport {PORT} -j ACCEPT\n")
    });
    let unused: String = unused.collect();
    let text = format!(
        "*filter\n:FORWARD DROP [0:0]\n{first}{unused}\
         -A FORWARD -d {server}/32 -j ACCEPT\n-A FORWARD -s {server}/32 -j ACCEPT\nCOMMIT\n"
    );
    node.run(&[restore], &text).map(drop)
}
