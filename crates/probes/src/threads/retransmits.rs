//! On which of its connections a database, or a client of it, sent segments again.

use super::total::numbers;
use crate::bpf::Running;
use libbpf_rs::{MapCore, MapFlags};
use std::collections::BTreeMap;
use untax_core::activity::Retransmits;
use untax_engines::listening_ports;
use untax_host::Host;

/// The program's function for it: a kernel may lack its tracepoint.
pub(super) const RETRANSMITS: &str = "on_retransmit";

/// `ALL_PORTS` of threads.h.
const ALL_PORTS: u32 = 0;

/// How many segments were sent again, by network namespace and port of either end.
pub(super) struct ByPort(BTreeMap<(u32, u32), u64>);

impl ByPort {
    /// What was sent again since this was asked last; nothing where this kernel does not tell.
    pub(super) fn taken(bpf: &Running) -> libbpf_rs::Result<Option<Self>> {
        if !bpf.has(RETRANSMITS) {
            return Ok(None);
        }
        let map = bpf.map("sent_again")?;
        let mut counts = BTreeMap::new();
        let keys: Vec<Vec<u8>> = map.keys().collect();
        for key in keys {
            // An entry may give way to a newer one meanwhile.
            let Some(count) = map.lookup(&key, MapFlags::ANY)? else { continue };
            let number = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
            if let (Some(network), Some(port), Some(&[count])) = (
                key.get(0..4).and_then(number),
                key.get(4..8).and_then(number),
                numbers(&count).get(..1),
            ) {
                counts.insert((network, port), count);
            }
            let _ = map.delete(&key);
        }
        Ok(Some(Self(counts)))
    }

    /// Those of the server with this main process. Its ports are looked for where anything was sent
    /// again: that the kernel walks all connections for them is a tax of its own.
    pub(super) fn of(&self, host: &Host, pid: u32) -> Option<Retransmits> {
        let link = host.link(&format!("/proc/{pid}/ns/net")).into_value()?;
        let network = link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
        let Some(all) = self.0.get(&(network, ALL_PORTS)).copied() else {
            return Some(Retransmits { own: 0, all: 0 });
        };
        let ports = listening_ports(host, pid).into_value()?;
        Some(self.at(network, all, &ports))
    }

    fn at(&self, network: u32, all: u64, ports: &[u16]) -> Retransmits {
        let at = |port: &u16| self.0.get(&(network, u32::from(*port))).copied().unwrap_or(0);
        // Two of its ports are the ends of no connection but one with itself.
        Retransmits { own: ports.iter().map(at).sum::<u64>().min(all), all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_what_its_ports_sent_in_its_network() {
        let counts = [((7, 0), 50), ((7, 5432), 20), ((7, 6379), 25), ((8, 0), 9), ((8, 5432), 9)];
        let by_port = ByPort(counts.into());
        let own = |ports: &[u16]| by_port.at(7, 50, ports).own;
        assert_eq!([own(&[5432]), own(&[5432, 6379]), own(&[5433]), own(&[])], [20, 45, 0, 0]);
    }

    #[test]
    fn ports_of_who_may_not_be_looked_at_are_unknown() {
        let by_port = ByPort([((7, 0), 50)].into());
        assert_eq!(by_port.of(&Host::live(), u32::MAX), None);
        let own = by_port.of(&Host::live(), std::process::id());
        assert_eq!(own, Some(Retransmits { own: 0, all: 0 }), "nothing in this network");
    }
}
