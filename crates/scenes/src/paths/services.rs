//! The services of a cluster: which there are, and rules of iptables for them as kube-proxy writes them.

use super::kind::PORT;
use super::parts::{SERVER, backend, pod_address};
use crate::namespace::Namespace;
use crate::{SceneError, program};
use std::net::Ipv4Addr;

/// The service that clients use; no other has this address.
pub(super) const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 111, 255, 254);

/// Addresses of services that nobody uses.
pub(super) fn others(services: u32) -> impl Iterator<Item = Ipv4Addr> {
    let first = u32::from(Ipv4Addr::new(10, 96, 0, 1));
    (0..services.saturating_sub(1)).map(move |number| Ipv4Addr::from(first + number))
}

/// A pod that does not exist, behind a service that nobody uses.
pub(super) const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 245, 0, 2);

/// Loads rules with `iptables-restore` of one of the two kinds, `nft` or `legacy`.
pub(super) fn load_iptables(node: &Namespace, kind: &str, services: u32) -> Result<(), SceneError> {
    let restore = format!("iptables-{kind}-restore");
    program::find(&restore, "iptables")?;
    // Another namespace's rules may be loading: both wait for one lock of the machine.
    let words: &[&str] = if kind == "legacy" { &[&restore, "-w", "60"] } else { &[&restore] };
    node.run(words, &rules(services)).map(drop)
}

/// The rules that kube-proxy writes for services with one endpoint each, in its own words. The service that
/// clients use comes last, so that a new connection is compared with all.
fn rules(services: u32) -> String {
    let server = pod_address(SERVER);
    let mut chains = String::new();
    let (mut portals, mut endpoints) = (String::new(), String::new());
    let unused = others(services).map(|service| (service, NOBODY, format!("{NOBODY}:{PORT}")));
    let all = unused.chain([(SERVICE, server, backend())]);
    for (number, (service, pod, to)) in all.enumerate() {
        for protocol in ["tcp", "udp"] {
            // kube-proxy names chains by hashes; only the length matters.
            let name = format!("{protocol}-{number:012}");
            chains += &format!(":KUBE-SVC-{name} - [0:0]\n:KUBE-SEP-{name} - [0:0]\n");
            portals += &format!(
                "-A KUBE-SERVICES -d {service}/32 -p {protocol} -m comment --comment \
                 \"default/service-{number} cluster IP\" -m {protocol} --dport {PORT} \
                 -j KUBE-SVC-{name}\n"
            );
            endpoints += &format!(
                "-A KUBE-SVC-{name} -j KUBE-SEP-{name}\n\
                 -A KUBE-SEP-{name} -s {pod}/32 -j KUBE-MARK-MASQ\n\
                 -A KUBE-SEP-{name} -p {protocol} -m {protocol} -j DNAT --to-destination {to}\n"
            );
            // A service that nobody uses has one port.
            if service != SERVICE {
                break;
            }
        }
    }
    format!(
        "*filter\n:KUBE-FORWARD - [0:0]\n\
         -A FORWARD -j KUBE-FORWARD\n\
         -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n\
         -A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT\n\
         -A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
         COMMIT\n\
         *nat\n:KUBE-SERVICES - [0:0]\n:KUBE-MARK-MASQ - [0:0]\n:KUBE-POSTROUTING - [0:0]\n{chains}\
         -A PREROUTING -j KUBE-SERVICES\n\
         -A OUTPUT -j KUBE-SERVICES\n\
         -A POSTROUTING -j KUBE-POSTROUTING\n\
         -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\n\
         -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN\n\
         -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0\n\
         -A KUBE-POSTROUTING -j MASQUERADE --random-fully\n\
         {portals}{endpoints}COMMIT\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading;
    use untax_host::nft_diag::{Counted, count};

    #[test]
    fn the_service_in_use_comes_behind_all_others() {
        let rules = rules(3);
        let portals: Vec<&str> =
            rules.lines().filter(|line| line.starts_with("-A KUBE-SERVICES")).collect();
        // Two that nobody uses, and one with TCP and UDP.
        assert_eq!(portals.len(), 4);
        assert!(portals[0].contains("-d 10.96.0.1/32") && portals[1].contains("-d 10.96.0.2/32"));
        assert!(portals[2..].iter().all(|line| line.contains("-d 10.111.255.254/32")));
        assert!(rules.lines().any(|line| line.ends_with("--to-destination 10.244.2.2:7000")));
    }

    #[test]
    fn the_kernel_lists_as_many_rules_as_were_loaded() {
        if !crate::account::is_root() {
            return;
        }
        let node = Namespace::make().unwrap();
        let rules = || node.within(|| count(Counted::Rules, "nat", "KUBE-SERVICES")).unwrap();
        assert!(!rules().is_present());
        if load_iptables(&node, "nft", 3_000).is_ok() {
            assert_eq!(rules(), Reading::Present(3_001));
        }
    }

    #[test]
    fn ten_thousand_services_have_addresses_of_their_own() {
        let mut all: Vec<Ipv4Addr> = others(10_000).chain([SERVICE]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10_000);
    }
}
