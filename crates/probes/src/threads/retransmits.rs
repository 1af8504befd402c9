//! What databases sent again, by the ports that they listen on.

use crate::bpf::Running;
use std::collections::BTreeMap;
use untax_engines::listening_ports;
use untax_host::Host;

/// The program's function for it: a kernel may lack its tracepoint.
pub(super) const RETRANSMITS: &str = "on_retransmit";

/// How many segments were sent again, by network namespace and the sender's port.
pub(super) struct ByPort(BTreeMap<(u32, u32), u64>);

impl ByPort {
    /// What was sent again since this was asked last; nothing where this kernel does not tell.
    pub(super) fn drain(bpf: &Running) -> Option<Self> {
        let counts = bpf.has(RETRANSMITS).then(|| bpf.drain("sent_again"))?.ok()?;
        let mut sums = BTreeMap::new();
        for (port, count) in counts {
            *sums.entry(port).or_default() += count;
        }
        Some(Self(sums))
    }

    /// What the server with this main process sent. Its ports are looked for where anything was sent again.
    pub(super) fn of(&self, host: &Host, pid: u32) -> Option<u64> {
        let link = host.link(&format!("/proc/{pid}/ns/net")).into_value()?;
        let network = link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
        if self.0.range((network, 0)..=(network, u32::MAX)).next().is_none() {
            return Some(0);
        }
        let ports = listening_ports(host, pid).into_value()?;
        Some(self.at(network, &ports))
    }

    fn at(&self, network: u32, ports: &[u16]) -> u64 {
        let at = |port: &u16| self.0.get(&(network, u32::from(*port)));
        ports.iter().filter_map(at).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_what_its_ports_sent_in_its_network() {
        let counts = [((7, 5432), 20), ((7, 6379), 25), ((8, 5432), 9)];
        let by_port = ByPort(counts.into());
        let own = |ports: &[u16]| by_port.at(7, ports);
        assert_eq!([own(&[5432]), own(&[5432, 6379]), own(&[5433]), own(&[])], [20, 45, 0, 0]);
    }

    #[test]
    fn what_a_process_that_may_not_be_looked_at_sent_is_unknown() {
        let by_port = ByPort([((7, 5432), 50)].into());
        assert_eq!(by_port.of(&Host::live(), u32::MAX), None);
        let nothing_here = by_port.of(&Host::live(), std::process::id());
        assert_eq!(nothing_here, Some(0));
    }
}
