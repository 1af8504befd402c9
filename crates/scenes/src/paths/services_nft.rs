//! A service by a map of nftables, as kube-proxy makes it in mode `nftables`.

use super::parts::{Ends, SERVER, backend, pod_address, pods_on_one_node};
use super::services::{NOBODY, SERVICE, others};
use super::{Counts, PORT, PathKind};
use crate::{SceneError, program};
use std::net::Ipv4Addr;

pub(super) const PATH: PathKind = PathKind {
    id: "services-nft",
    summary: "two pods, routed; the client uses one of so many services in a map of nftables",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "1"),
        ("rules", "a verdict map and chains as kube-proxy writes them in mode nftables"),
    ],
    counts: Some(Counts::Services),
    build,
};

fn build(services: u32) -> Result<Ends, SceneError> {
    program::find("nft", "nftables")?;
    let [client, server, node] = pods_on_one_node()?;
    node.run(&["nft", "-f", "-"], &rules(services))?;
    Ok(Ends::new(client, server, SERVICE, vec![node]))
}

fn rules(services: u32) -> String {
    let server = pod_address(SERVER);
    let (mut elements, mut chains) = (String::new(), String::new());
    let mut add = |number: usize, service: Ipv4Addr, protocol: &str, pod: Ipv4Addr, to: &str| {
        let name = format!("{number}-{protocol}");
        elements += &format!("{service} . {protocol} . {PORT} : goto service-{name},\n");
        chains += &format!(
            "chain endpoint-{name} {{\n\
             ip saddr {pod} jump mark-for-masquerade\n\
             meta l4proto {protocol} dnat to {to}\n}}\n\
             chain service-{name} {{\n\
             numgen random mod 1 vmap {{ 0 : goto endpoint-{name} }}\n}}\n"
        );
    };
    for (number, service) in others(services).enumerate() {
        add(number + 1, service, "tcp", NOBODY, &format!("{NOBODY}:{PORT}"));
    }
    for protocol in ["tcp", "udp"] {
        add(0, SERVICE, protocol, server, &backend());
    }
    format!(
        "table ip kube-proxy {{\n\
         chain mark-for-masquerade {{ meta mark set meta mark or 0x4000\n}}\n\
         {chains}\
         map service-ips {{ type ipv4_addr . inet_proto . inet_service : verdict\n\
         elements = {{ {elements} }}\n}}\n\
         chain services {{ ip daddr . meta l4proto . th dport vmap @service-ips\n}}\n\
         chain nat-prerouting {{ type nat hook prerouting priority dstnat; policy accept;\n\
         jump services\n}}\n\
         chain nat-postrouting {{ type nat hook postrouting priority srcnat; policy accept;\n\
         meta mark & 0x4000 == 0 return\n\
         masquerade fully-random\n}}\n\
         chain filter-forward {{ type filter hook forward priority filter; policy accept;\n\
         ct state invalid drop\n}}\n}}\n"
    )
}
