//! Rules of a network policy that only the first packet of a connection passes.

use super::ends::Ends;
use super::kind::{Counts, PathKind};
use super::parts::{SERVER, pod_address, pods_on_one_node};
use super::policies::load;
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "policies-stateful",
    summary: "as policies, behind a rule that accepts packets of known connections at once",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "1"),
        ("rules", "ctstate RELATED,ESTABLISHED first, then one peer each; policy drop"),
    ],
    counts: Some(Counts::Rules),
    build,
};

const KNOWN: &str = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n";

fn build(rules: u32) -> Result<Ends, SceneError> {
    let [client, server, node] = pods_on_one_node()?;
    load(&node, KNOWN, rules)?;
    Ok(Ends::new(client, server, pod_address(SERVER), vec![node]))
}
