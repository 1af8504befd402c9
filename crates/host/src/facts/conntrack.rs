//! The table of connections that the kernel tracks for firewalls and address translation.

use super::{Fact, formats};
use crate::{Host, process};
use untax_core::Reading::Absent;
use untax_core::host::HostFacts;
use untax_core::network::{Conntrack, ConntrackLimit};

pub(super) const FACT: Fact = Fact {
    id: "conntrack",
    summary: "connections tracked in the host's network namespace, their limit, and what it cost",
    source: "/proc/sys/net/netfilter/nf_conntrack_max, /proc/self/net/stat/nf_conntrack; on kernels \
             without that, nf_conntrack_count beside nf_conntrack_max",
    privilege: "none",
    minimum_kernel: "2.6.20",
    cost: "two small files",
    read,
};

fn read(host: &Host, facts: &mut HostFacts) {
    let most = formats::number(host, "/proc/sys/net/netfilter/nf_conntrack_max");
    facts.conntrack = most.and_then(|most| {
        let table = match process::conntrack(host, "self") {
            Absent(_) => formats::number(host, "/proc/sys/net/netfilter/nf_conntrack_count")
                .map(|entries| Conntrack { entries, refused: None }),
            table => table,
        };
        table.map(|table| ConntrackLimit { most, table })
    });
}
