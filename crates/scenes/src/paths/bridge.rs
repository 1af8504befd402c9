//! Two pods on a bridge of their node.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{CLIENT, SERVER, client, node_address, pod_link};
use crate::SceneError;
use crate::namespace::Namespace;

pub(super) const PATH: PathKind = PathKind {
    id: "bridge",
    summary: "two pods by veth pairs on a bridge of their node",
    configuration: &[("links", "veth, bridge"), ("bridge-nf-call-iptables", "0")],
    counts: None,
    build,
};

/// A new namespace has packets of bridges pass iptables where the kernel has `br_netfilter`.
const NO_FILTER: &str = "echo 0 2>/dev/null >/proc/sys/net/bridge/bridge-nf-call-iptables || true";

fn build(_: u32) -> Result<Ends, SceneError> {
    let (client, server, node) = (client()?, Namespace::make()?, Namespace::make()?);
    node.sh(NO_FILTER)?;
    node.ip("link add name bridge0 type bridge\nlink set bridge0 up\n")?;
    for (pod, number) in [(&client, CLIENT), (&server, SERVER)] {
        let (link, place, address) = (pod_link(number), pod.path(), node_address(number));
        node.ip(&format!(
            "link add name {link} type veth peer name eth0 netns {place}\n\
             link set {link} master bridge0\n\
             link set {link} up\n"
        ))?;
        pod.ip(&format!("address add {address}/24 dev eth0\nlink set eth0 up\n"))?;
    }
    Ok(Ends::new(client, server, node_address(SERVER), vec![node]))
}
