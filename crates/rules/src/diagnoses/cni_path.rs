//! `cni-path`: what the database's packets pass between its container and the network.

use crate::evidence;
use crate::model::client_network::Clients;
use crate::model::path_price;
use crate::model::without_tax::{self, Words};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::network::{Overlay, Way};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "cni-path",
    summary: "the database's packets go through a virtual link, and perhaps an overlay",
    what: "A database in its own network namespace reaches its clients through a pair of virtual \
           links and the host's routing and firewall rules. Often an overlay also wraps each \
           packet into another. The kernel does each step for each packet, on the database's CPUs \
           or others. A published bench compared Redis between pods with Redis between nodes; its \
           own noise was 12 %. Latency changed by +33 % (19 to 46) with routing by the host, and \
           by 0 % (-10 to +9) with routing by eBPF. For short connections iptables can be faster, \
           below some 20,000 services.",
    method: "The rule lists the links and rules that a packet passes; no tax is measured.",
    measured: "The rule compares the namespace of the database with that of the host. The rule \
               reads the link of the database's default route, and the host's links whose other \
               end has that number. The rule reads the host's overlays that carried packets in the \
               window, and drops of the link. The finding is info, and needs a link that carries \
               packets. The tax is unmeasured: the kernel does this work in interrupts and in the \
               sending threads, and charges it to nobody. Compare the same load from the host's \
               network. The price in latency is modelled by the round trips of a request, as in \
               far-clients; the path is a part of them. Where `untax bench network` ran on this \
               host, the most similar path gives the extra time of a round trip over that of a \
               bare virtual wire. The number of service rules, multiplied by the slope measured \
               here, gives the time that they add to a new connection.",
    fix: "If latency of small requests matters, use the host's network (hostNetwork, --network \
          host), a CNI with eBPF host routing, or a macvlan, ipvlan or SR-IOV link. Replace an \
          overlay by native routing.",
    sources: &["man7.org: veth(4), network_namespaces(7)", "docs.cilium.io: eBPF host routing"],
    privilege: "root for other users' processes",
    minimum_kernel: "3.0",
    cost: "three small files for each database in a namespace of its own; the rules of a node",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// A database that fewer packets pass is used in another way: over a Unix socket, or not at all.
const WORTH_PACKETS_PER_S: f64 = 10.0;

/// Packets dropped, a second: fewer are chance. One in two seconds at TCP's time-out of 200 ms or more
/// is a tenth of one client's time.
const WORTH_DROPS_PER_S: f64 = 0.5;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    window.databases().flat_map(|pair| evaluate_one(window, &pair)).collect()
}

fn evaluate_one(window: &Window, pair: &Pair) -> Vec<Diagnosis> {
    let id = Some(pair.end.id.as_str());
    let way = |database: &untax_core::Database| {
        database.network.as_ref().and_then(|network| network.way.clone())
    };
    let end = match way(pair.end) {
        Reading::Present(way) => way,
        // It shares the host's network, or has no way out of its own.
        Reading::Absent(_) => return Vec::new(),
        gap => return without_tax::unmeasured(RULE.id, id, gap.why().unwrap_or_default()),
    };
    let links = match &window.end.host.links {
        Reading::Present(links) => links,
        gap => return without_tax::unmeasured(RULE.id, id, gap.why().unwrap_or_default()),
    };
    let Some(start) = pair.start.and_then(|start| way(start).into_value()) else {
        return Vec::new();
    };
    let packets_per_s =
        end.packets.saturating_sub(start.packets) as f64 / pair.seconds.max(f64::EPSILON);
    let is_pair = end.index.value().is_some_and(|index| links.veth_peers.contains(index));
    if packets_per_s < WORTH_PACKETS_PER_S || !is_pair {
        return Vec::new();
    }
    let dropped = end.dropped.saturating_sub(start.dropped);
    let before = window.start.host.links.value();
    let lost = dropped as f64 >= WORTH_DROPS_PER_S * pair.seconds;
    let drops = Drops { count: dropped, is_often: lost && dropped > 0 };
    let clients = Clients::of(pair);
    let overlays = links.carrying_since(before);
    let mut price = clients.value().map_or_else(Vec::new, |all| all.latency_evidence(pair));
    price.extend(path_price::price(window, &overlays));
    finding_and_gap(id, &Path { way: &end, packets_per_s, drops, overlays, price })
}

/// Packets that the link dropped in the window.
struct Drops {
    count: u64,
    /// Whether they are too many to be chance.
    is_often: bool,
}

/// What packets pass on their way to the clients.
struct Path<'a> {
    way: &'a Way,
    packets_per_s: f64,
    drops: Drops,
    overlays: Vec<Overlay>,
    /// What the whole of it costs a request.
    price: Vec<Evidence>,
}

fn finding_and_gap(id: Option<&str>, path: &Path) -> Vec<Diagnosis> {
    let Path { way, packets_per_s, drops, overlays, price } = path;
    let named = |overlay: &Overlay| format!("{} ({})", overlay.name, overlay.kind);
    let overlays: Vec<String> = overlays.iter().map(named).collect();
    let beside = match overlays.as_slice() {
        [] => String::new(),
        overlays => format!("; the host's overlay {} is in use", overlays.join(", ")),
    };
    let Drops { count: dropped, is_often: lost } = *drops;
    let losses = if lost { format!(", {dropped} dropped") } else { String::new() };
    let mut evidence = vec![
        Evidence::new(&evidence::PACKETS, *packets_per_s, "/proc/PID/net/dev"),
        Evidence::new(&evidence::PACKETS_DROPPED, dropped, "/proc/PID/net/dev"),
        Evidence::new(&evidence::LINK, way.device.as_str(), "/proc/PID/net/route"),
    ];
    evidence.extend(
        overlays.iter().map(|o| Evidence::new(&evidence::OVERLAY, o.as_str(), "/sys/class/net")),
    );
    evidence.extend_from_slice(price);
    let words = Words {
        severity: if lost { Severity::Low } else { Severity::Info },
        summary: format!(
            "{packets_per_s:.0} packets a second go through the virtual link {}{losses}{beside}",
            way.device
        ),
        fix: "if latency matters, use the host's network, eBPF host routing, or native routing"
            .to_owned(),
        evidence,
        gain: None,
        remedy: None,
        why: "the kernel counts the work of this path for nobody; compare the same load from the \
              host's network",
    };
    without_tax::finding_and_gap(RULE.id, id, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clients::{connect, connection};
    use crate::test_window;
    use untax_core::Finding;
    use untax_core::evidence::Value;
    use untax_core::network::{DatabaseNetwork, Links, Overlay};

    fn found(packets: u64, dropped: u64, peers: &[u32], overlay: u64) -> Vec<Finding> {
        let mut window = test_window::postgres();
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let overlays = vec![Overlay {
                name: "flannel.1".to_owned(),
                kind: "vxlan".to_owned(),
                packets: 9 + by * overlay,
            }];
            snapshot.host.links = Reading::Present(Links { overlays, veth_peers: peers.to_vec() });
            snapshot.databases[0].network = Reading::Present(DatabaseNetwork {
                own_namespace: true,
                way: Reading::Present(Way {
                    device: "eth0".to_owned(),
                    index: Reading::Present(3),
                    packets: 100 + by * packets,
                    dropped: 1 + by * dropped,
                }),
                conntrack: Reading::Absent(String::new()),
                clients: Reading::absent("not read"),
            });
        }
        test_window::found(evaluate(&window))
    }

    #[test]
    fn a_virtual_link_is_told_without_a_price() {
        let findings = found(20_000, 0, &[2, 3], 70);
        assert_eq!(findings[0].severity, Severity::Info);
        assert!(findings[0].summary.starts_with("2000 packets a second"));
        assert!(findings[0].summary.contains("flannel.1 (vxlan)"));
        assert!(findings[0].tax.is_none() && findings[0].gain.is_none());
        let quiet = found(20_000, 9, &[3], 0);
        assert_eq!(quiet[0].severity, Severity::Low);
        assert!(!quiet[0].summary.contains("flannel"), "it carried nothing");
    }

    #[test]
    fn its_price_is_the_round_trips_of_a_request() {
        let mut window = test_window::postgres();
        connect(&mut window, &[connection(1, 400, 9)], &[connection(1, 400, 909)], 300);
        window.start.host.links = Reading::absent("not read");
        window.end.host.links =
            Reading::Present(Links { overlays: Vec::new(), veth_peers: vec![3] });
        for (snapshot, packets) in [(&mut window.start, 0), (&mut window.end, 9000)] {
            let Reading::Present(network) = &mut snapshot.databases[0].network else { continue };
            let (device, index) = ("eth0".to_owned(), Reading::Present(3));
            network.way = Reading::Present(Way { device, index, packets, dropped: 0 });
        }
        let finding = test_window::found(evaluate(&window)).remove(0);
        let number = |id: &str| match finding.evidence.iter().find(|e| e.id == id)?.value {
            Value::Number(number) => Some((number * 1e6).round()),
            _ => None,
        };
        // Three round trips of 200 to 400 µs each.
        assert_eq!(number("client-rtt"), Some(400.0));
        assert_eq!(number("network-latency"), Some(570.0));
        assert_eq!(number("network-latency-most"), Some(1200.0));
    }

    #[test]
    fn other_links_and_unused_ones_are_nothing() {
        assert!(found(20_000, 0, &[2], 70).is_empty());
        assert!(found(20, 0, &[3], 70).is_empty());
    }
}
