//! The network plugin of a Kubernetes node, and how its services are balanced.

use super::Fact;
use crate::Host;
use crate::nft_diag::{Counted, count};
use crate::node_files::is_in_its_network;
use serde_json::{Value, json};
use untax_core::Reading::{self, Absent, Denied, Present};
use untax_core::host::HostFacts;
use untax_core::network::{ClusterNetwork, Plugin, Services};

pub(super) const FACT: Fact = Fact {
    id: "cluster_network",
    summary: "the network plugin (CNI) of a node, the mode of kube-proxy and its number of rules",
    source: "/etc/cni/net.d, nftables by netlink, /proc/net/ip_vs, /proc/net/ip_tables_names",
    privilege: "CAP_NET_ADMIN for the rules",
    minimum_kernel: "3.13",
    cost: "one small file; some ms for ten thousand rules",
    read,
};

/// Where network plugins put their configuration; the first file by name counts (libcni).
const PLUGINS: &str = "/etc/cni/net.d";

const IPVS: &str = "/proc/net/ip_vs";
const LEGACY: &str = "/proc/net/ip_tables_names";

fn read(host: &Host, facts: &mut HostFacts) {
    facts.cluster_network =
        plugin(host).map(|plugin| ClusterNetwork { plugin, services: services(host) });
}

fn plugin(host: &Host) -> Reading<Plugin> {
    let no_plugin = || Absent(format!("no network plugin in {PLUGINS}: no node of a cluster"));
    let names = match host.names(PLUGINS) {
        Present(names) => names,
        Absent(_) => return no_plugin(),
        gap => return gap.and_then(|_| no_plugin()),
    };
    let is_configuration =
        |name: &&String| [".conf", ".conflist", ".json"].iter().any(|end| name.ends_with(end));
    let Some(name) = names.iter().find(is_configuration) else { return no_plugin() };
    let path = format!("{PLUGINS}/{name}");
    host.map_text(&path, |text| reduced(&text)).parse(&path, |text| {
        let value: Value = serde_json::from_str(text).ok()?;
        let types = value["types"].as_array()?.iter().filter_map(Value::as_str);
        let name = value["name"].as_str()?.to_owned();
        Some(Plugin { name, types: types.map(str::to_owned).collect() })
    })
}

/// Names and types alone, as a list of them: whatever else a configuration holds is not captured. What is
/// reduced already stays as it is.
fn reduced(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    if value["types"].is_array() {
        return json!({"name": value["name"], "types": value["types"]}).to_string();
    }
    let plugins = value["plugins"].as_array().into_iter().flatten();
    let types: Vec<&Value> = std::iter::once(&value)
        .chain(plugins)
        .map(|p| &p["type"])
        .filter(|t| t.is_string())
        .collect();
    json!({"name": value["name"], "types": types}).to_string()
}

/// The first that has services.
fn services(host: &Host) -> Reading<Services> {
    let of = |mode: &str, rules| Services { mode: mode.to_owned(), rules };
    let nft = |key: &str, what, table: &'static str, name: &'static str| {
        host.observe(key, || {
            if is_in_its_network() {
                return count(what, table, name);
            }
            Denied("its rules are told within the machine's network alone (hostNetwork)".to_owned())
        })
    };
    let map = nft("nftables kube-proxy", Counted::Elements, "kube-proxy", "service-ips");
    if let Present(elements) = map {
        return Present(of("nftables", Present(elements)));
    }
    let chain = nft("nftables KUBE-SERVICES", Counted::Rules, "nat", "KUBE-SERVICES");
    if let Present(rules) = chain {
        return Present(of("iptables", Present(rules)));
    }
    let virtual_servers = host.text(IPVS).into_value().map(|text| {
        let lines =
            text.lines().filter(|line| line.starts_with("TCP ") || line.starts_with("UDP "));
        lines.count() as u64
    });
    if let Some(servers) = virtual_servers.filter(|servers| *servers > 0) {
        return Present(of("ipvs", Present(servers)));
    }
    let legacy = host.text(LEGACY).into_value().unwrap_or_default();
    if legacy.lines().any(|table| table.trim() == "nat") {
        let why = "the kernel lists the rules of iptables-legacy to iptables-legacy alone";
        return Present(of("iptables-legacy", Absent(why.to_owned())));
    }
    match chain {
        Denied(why) => Denied(why),
        Reading::Failed(why) => Reading::Failed(why),
        _ => Absent("no rules of kube-proxy: eBPF, or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    const FLANNEL: &str = r#"{"name": "cbr0", "cniVersion": "0.3.1", "token": "secret", "plugins": [
        {"type": "flannel", "delegate": {"password": "secret"}}, {"type": "portmap"}]}"#;

    fn read(files: &[(&str, &str)]) -> Reading<ClusterNetwork> {
        let record = files
            .iter()
            .fold(Record::default(), |record, (path, text)| record.with_file(path, text));
        super::super::read_all(&Host::from_record(record)).cluster_network
    }

    #[test]
    fn the_first_configuration_names_the_plugin_and_a_secret_is_dropped() {
        let later = ("/etc/cni/net.d/87-podman.conflist", "{}");
        let first = reduced(FLANNEL);
        assert!(!first.contains("secret"), "{first}");
        assert_eq!(reduced(&first), first);
        let files = [("/etc/cni/net.d/10-flannel.conflist", first.as_str()), later];
        let network = read(&files).into_value().unwrap();
        assert_eq!(network.plugin.name, "cbr0");
        assert_eq!(network.plugin.types, ["flannel", "portmap"]);
    }

    #[test]
    fn one_plugin_alone_and_services_of_ipvs() {
        let calico = reduced(r#"{"name": "k8s-pod-network", "type": "calico"}"#);
        let ipvs = "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n\
                    TCP  0A600001:01BB rr\n  -> C0A80001:192B Masq 1 0 0\nUDP  0A60000A:0035 rr\n";
        let files = [("/etc/cni/net.d/10-calico.conf", calico.as_str()), (IPVS, ipvs)];
        let network = read(&files).into_value().unwrap();
        assert_eq!(network.plugin.types, ["calico"]);
        let services = network.services.into_value().unwrap();
        assert_eq!((services.mode.as_str(), services.rules), ("ipvs", Present(2)));
    }

    #[test]
    fn a_machine_that_is_no_node_has_none() {
        assert!(matches!(read(&[]), Absent(_)));
    }
}
