//! What the way of a database's packets costs, by what `bench network` measured on this host.

use crate::evidence;
use untax_core::network::{ClusterNetwork, Overlay, Services, path_like};
use untax_core::{Evidence, Interval, PathCosts, Reading, Window};

/// Where the price is from.
const BENCH: &str = "untax bench network";

/// What is known of the node's network, and what the way costs where that was measured.
pub fn price(window: &Window, overlays: &[Overlay]) -> Vec<Evidence> {
    let cluster = window.end.host.cluster_network.value();
    let services = cluster.and_then(|cluster| cluster.services.value());
    let mut evidence = cluster.map_or_else(Vec::new, described);
    match &window.path_costs {
        Reading::Present(costs) => {
            evidence.push(round_trip(costs, overlays, services));
            evidence.extend(services.and_then(|services| connection(costs, services)));
        }
        gap => {
            let why = gap.why().unwrap_or_default();
            evidence.push(Evidence::new(&evidence::PATH_PRICE_GAP, why, BENCH));
        }
    }
    evidence
}

fn described(cluster: &ClusterNetwork) -> Vec<Evidence> {
    let plugin = format!("{} ({})", cluster.plugin.name, cluster.plugin.types.join(", "));
    let mut all = vec![Evidence::new(&evidence::NETWORK_PLUGIN, plugin, "/etc/cni/net.d")];
    if let Some(services) = cluster.services.value() {
        let mode = services.mode.as_str();
        all.push(Evidence::new(&evidence::SERVICE_MODE, mode, "nftables, /proc/net/ip_vs"));
        let rules = services.rules.value();
        all.extend(
            rules.map(|r| Evidence::new(&evidence::SERVICE_RULES, *r, "nftables, /proc/net/ip_vs")),
        );
    }
    all
}

fn round_trip(costs: &PathCosts, overlays: &[Overlay], services: Option<&Services>) -> Evidence {
    let path = path_like(overlays, services);
    if let Some(trip) = costs.round_trip(&path) {
        return seconds(&evidence::PATH_PRICE, trip.extra_us).of(&trip.path);
    }
    let why = format!("not measured here: {BENCH} --arms {path}");
    Evidence::new(&evidence::PATH_PRICE_GAP, why, BENCH)
}

fn connection(costs: &PathCosts, services: &Services) -> Option<Evidence> {
    let count = *services.rules.value()?;
    let us = costs.connection_us(services.series()?, count)?;
    Some(seconds(&evidence::SERVICE_PRICE, us))
}

fn seconds(kind: &'static untax_core::EvidenceKind, us: Interval) -> Evidence {
    let note = format!("({:.2} … {:.2} µs)", us.low, us.high);
    Evidence::new(kind, us.mid * 1e-6, BENCH).noted(&note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::evidence::Value;
    use untax_core::network::Plugin;
    use untax_core::path_costs::{Connections, RoundTrip};

    fn window(mode: &str, rules: u64) -> Window {
        let mut window = test_window::postgres();
        let plugin = Plugin { name: "cbr0".to_owned(), types: vec!["flannel".to_owned()] };
        let services =
            Reading::Present(Services { mode: mode.to_owned(), rules: Reading::Present(rules) });
        window.end.host.cluster_network = Reading::Present(ClusterNetwork { plugin, services });
        let trip = |path: &str, us| RoundTrip {
            path: path.to_owned(),
            extra_us: Interval::new(us - 0.1, us, us + 0.1),
        };
        window.path_costs = Reading::Present(PathCosts {
            run: "bench-network-1".to_owned(),
            taken_at: jiff::Timestamp::UNIX_EPOCH,
            cpu_model: String::new(),
            kernel_release: String::new(),
            round_trips: vec![trip("services-iptables-1", 3.0), trip("nodes-vxlan", 5.0)],
            connections: vec![Connections {
                series: "services-iptables".to_owned(),
                per_thousand_us: Interval::exact(9.0),
            }],
        });
        window
    }

    fn number(evidence: &[Evidence], id: &str) -> Option<f64> {
        evidence.iter().find(|e| e.id == id).and_then(|e| match e.value {
            Value::Number(number) => Some((number * 1e9).round()),
            _ => None,
        })
    }

    fn overlay(kind: &str) -> Overlay {
        Overlay { name: "flannel.1".to_owned(), kind: kind.to_owned(), packets: 7 }
    }

    #[test]
    fn services_are_priced_by_the_slope_and_the_way_by_the_path_like_it() {
        let evidence = price(&window("iptables", 2000), &[]);
        assert_eq!(number(&evidence, "path-price"), Some(3000.0));
        assert_eq!(number(&evidence, "service-price"), Some(18_000.0));
        assert!(evidence.iter().any(|e| e.id == "network-plugin"));
        let over = price(&window("iptables", 2000), &[overlay("vxlan")]);
        assert_eq!(number(&over, "path-price"), Some(5000.0));
    }

    #[test]
    fn what_was_not_measured_here_says_how_to() {
        let said = |evidence: &[Evidence]| {
            let gap = evidence.iter().find(|e| e.id == "path-price-missing").unwrap();
            format!("{:?}", gap.value)
        };
        let geneve = price(&window("iptables", 10), &[overlay("geneve")]);
        assert!(said(&geneve).contains("--arms nodes-geneve"));
        assert_eq!(number(&geneve, "path-price"), None);
        let ipvs = price(&window("ipvs", 10), &[]);
        assert_eq!(number(&ipvs, "service-price"), None);
        let mut never = window("iptables", 10);
        never.path_costs = Reading::absent("not measured here: untax bench network");
        let evidence = price(&never, &[]);
        assert!(said(&evidence).contains("untax bench network"));
        assert_eq!(number(&evidence, "service-price"), None);
    }
}
