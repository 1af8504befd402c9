//! Two pods whose node routes between them and keeps a table of connections.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{SERVER, pod_address, pods_on_one_node};
use crate::{SceneError, program};

pub(super) const PATH: PathKind = PathKind {
    id: "conntrack",
    summary: "as routed, with a table of connections that each packet is looked up in",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "1"),
        ("nftables", "forward: ct state new,established,related accept; policy drop"),
    ],
    counts: None,
    build,
};

/// What has no state is dropped: what comes through was looked up.
const TRACK: &str = "
    table ip untax {
        chain forward {
            type filter hook forward priority 0; policy drop;
            ct state new,established,related accept
        }
    }";

fn build(_: u32) -> Result<Ends, SceneError> {
    program::find("nft", "nftables")?;
    let [client, server, node] = pods_on_one_node()?;
    node.run(&["nft", "-f", "-"], TRACK)?;
    Ok(Ends::new(client, server, pod_address(SERVER), vec![node]))
}
