//! A service by a map of nftables, as kube-proxy makes it in mode `nftables`.

use super::ends::Ends;
use super::kind::{Counts, PORT, PathKind};
use super::parts::{SERVER, backend, pod_address, pods_on_one_node};
use super::services::{NOBODY, SERVICE, others};
use crate::{SceneError, program};

pub(super) const PATH: PathKind = PathKind {
    id: "services-nft",
    summary: "two pods, routed; the client uses one of so many services in a map of nftables",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "1"),
        (
            "rules",
            "a verdict map as kube-proxy writes it in mode nftables; unused services share a chain",
        ),
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

/// A map of all services, and chains for the one that clients use as kube-proxy writes them. The others share
/// one chain: the kernel looks at every chain of a map when it loads it, which takes 15 s for ten thousand.
fn rules(services: u32) -> String {
    let server = pod_address(SERVER);
    let unused = others(services).map(|service| format!("{service} . tcp . {PORT} : goto nobody"));
    let used = ["tcp", "udp"].map(|p| format!("{SERVICE} . {p} . {PORT} : goto service-{p}"));
    let elements: Vec<String> = unused.chain(used).collect();
    let chains = ["tcp", "udp"].map(|protocol| {
        format!(
            "chain endpoint-{protocol} {{\n\
             ip saddr {server} jump mark-for-masquerade\n\
             meta l4proto {protocol} dnat to {}\n}}\n\
             chain service-{protocol} {{\n\
             numgen random mod 1 vmap {{ 0 : goto endpoint-{protocol} }}\n}}\n",
            backend()
        )
    });
    format!(
        "table ip kube-proxy {{\n\
         chain mark-for-masquerade {{ meta mark set meta mark or 0x4000\n}}\n\
         chain nobody {{ meta l4proto tcp dnat to {NOBODY}:{PORT}\n}}\n\
         {}\
         map service-ips {{ type ipv4_addr . inet_proto . inet_service : verdict\n\
         elements = {{ {} }}\n}}\n\
         chain services {{ ip daddr . meta l4proto . th dport vmap @service-ips\n}}\n\
         chain nat-prerouting {{ type nat hook prerouting priority dstnat; policy accept;\n\
         jump services\n}}\n\
         chain nat-postrouting {{ type nat hook postrouting priority srcnat; policy accept;\n\
         meta mark & 0x4000 == 0 return\n\
         masquerade fully-random\n}}\n\
         chain filter-forward {{ type filter hook forward priority filter; policy accept;\n\
         ct state invalid drop\n}}\n}}\n",
        chains.concat(),
        elements.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use untax_core::Reading;
    use untax_host::nft_diag::{Counted, count};

    #[test]
    fn the_kernel_lists_as_many_elements_as_were_loaded() {
        if !crate::account::is_root() || program::find("nft", "nftables").is_err() {
            return;
        }
        let node = Namespace::make().unwrap();
        node.run(&["nft", "-f", "-"], &rules(2_000)).unwrap();
        let elements =
            node.within(|| count(Counted::Elements, "kube-proxy", "service-ips")).unwrap();
        assert_eq!(elements, Reading::Present(2_001));
    }
}
