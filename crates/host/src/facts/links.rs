//! Virtual links of the host: overlays, tunnels, and links into containers.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading;
use untax_core::host::HostFacts;
use untax_core::network::{Links, Overlay};

pub(super) const FACT: Fact = Fact {
    id: "links",
    summary: "overlays and tunnels of the host, and its links into other network namespaces",
    source: "/sys/class/net",
    privilege: "none",
    minimum_kernel: "2.6",
    cost: "one to three small files for each link",
    read,
};

const LINKS: &str = "/sys/class/net";

/// Links that wrap packets, by what the kernel calls their kind (`DEVTYPE`).
const WRAPPING: [&str; 3] = ["vxlan", "geneve", "wireguard"];

/// Links that wrap packets and have no such name, by their hardware type (`ARPHRD_TUNNEL`,
/// `ARPHRD_SIT` and `ARPHRD_IPGRE` of `linux/if_arp.h`).
const TUNNELS: [(u32, &str); 3] = [(768, "ipip"), (776, "sit"), (778, "gre")];

/// `ARPHRD_ETHER`.
const ETHERNET: u32 = 1;

/// `IFF_UP`.
const UP: u32 = 1;

enum Link {
    Overlay(Overlay),
    Veth { peer: u32 },
}

fn read(host: &Host, facts: &mut HostFacts) {
    facts.links = host.names(LINKS).map(|names| {
        let mut links = Links { overlays: Vec::new(), veth_peers: Vec::new() };
        for link in names.iter().filter_map(|name| one(host, name)) {
            match link {
                Link::Overlay(overlay) => links.overlays.push(overlay),
                Link::Veth { peer } => links.veth_peers.push(peer),
            }
        }
        links.veth_peers.sort_unstable();
        links
    });
}

fn one(host: &Host, name: &str) -> Option<Link> {
    let number = |file: &str| formats::number::<u32>(host, &format!("{LINKS}/{name}/{file}"));
    let uevent = host.text(&format!("{LINKS}/{name}/uevent")).into_value()?;
    let value =
        |key: &str| uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    if let Some(kind) = value("DEVTYPE") {
        return if WRAPPING.contains(&kind) { overlay(host, name, kind) } else { None };
    }
    let hardware = number("type").into_value()?;
    if let Some((_, kind)) = TUNNELS.iter().find(|(number, _)| *number == hardware) {
        return overlay(host, name, kind);
    }
    // A link whose other end has another number: the end of a pair, when it is of no named kind.
    let index: u32 = value("IFINDEX")?.parse().ok()?;
    let peer = number("iflink").into_value().filter(|peer| *peer != index && *peer != 0)?;
    (hardware == ETHERNET).then_some(Link::Veth { peer })
}

/// Kernels make a tunnel of each kind by themselves, which is down until someone needs it.
fn overlay(host: &Host, name: &str, kind: &str) -> Option<Link> {
    let text = |file: &str| host.text(&format!("{LINKS}/{name}/{file}"));
    let flags = text("flags").into_value()?;
    let flags = u32::from_str_radix(flags.trim().strip_prefix("0x")?, 16).ok()?;
    let count = |file: &str| -> Reading<u64> {
        formats::number(host, &format!("{LINKS}/{name}/statistics/{file}"))
    };
    let packets =
        count("rx_packets").into_value()?.saturating_add(count("tx_packets").into_value()?);
    (flags & UP != 0)
        .then(|| Link::Overlay(Overlay { name: name.to_owned(), kind: kind.to_owned(), packets }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn links(files: &[(&str, &str)]) -> Links {
        let record = files.iter().fold(Record::default(), |record, (path, text)| {
            record.with_file(&format!("{LINKS}/{path}"), text)
        });
        super::super::read_all(&Host::from_record(record)).links.into_value().unwrap()
    }

    #[test]
    fn overlays_and_pairs_are_told_from_cards() {
        let links = links(&[
            ("eth0/uevent", "INTERFACE=eth0\nIFINDEX=2\n"),
            ("eth0/type", "1\n"),
            ("eth0/iflink", "2\n"),
            ("flannel.1/uevent", "DEVTYPE=vxlan\nINTERFACE=flannel.1\nIFINDEX=5\n"),
            ("flannel.1/flags", "0x1043\n"),
            ("flannel.1/statistics/rx_packets", "30\n"),
            ("flannel.1/statistics/tx_packets", "12\n"),
            ("cni0/uevent", "DEVTYPE=bridge\nINTERFACE=cni0\nIFINDEX=6\n"),
            ("veth1/uevent", "INTERFACE=veth1\nIFINDEX=7\n"),
            ("veth1/type", "1\n"),
            ("veth1/iflink", "3\n"),
            ("tunl0/uevent", "INTERFACE=tunl0\nIFINDEX=8\n"),
            ("tunl0/type", "768\n"),
            ("tunl0/flags", "0x80\n"),
            ("tunl0/statistics/rx_packets", "1\n"),
            ("tunl0/statistics/tx_packets", "1\n"),
        ]);
        assert_eq!(links.veth_peers, [3]);
        let [overlay] = &links.overlays[..] else { panic!("{links:?}: tunl0 is down") };
        assert_eq!((overlay.kind.as_str(), overlay.packets), ("vxlan", 42));
    }

    #[test]
    fn garbage_is_no_link() {
        let links = links(&[
            ("a/uevent", "DEVTYPE=vxlan\n"),
            ("a/flags", "1043\n"),
            ("b/uevent", "IFINDEX=x\n"),
            ("b/type", "1\n"),
            ("b/iflink", "3\n"),
            ("c/uevent", "\n"),
        ]);
        assert!(links.overlays.is_empty() && links.veth_peers.is_empty(), "{links:?}");
    }
}
