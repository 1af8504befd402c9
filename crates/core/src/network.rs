//! The network of a host and of a database, as far as it is the platform's.

use crate::{Interval, Reading};
use serde::{Deserialize, Serialize};

/// The virtual links of the host's own network namespace that databases' packets may pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Links {
    /// Links that wrap packets into others: overlays and tunnels.
    pub overlays: Vec<Overlay>,
    /// Of each link that leads into another namespace, the number of its other end there.
    pub veth_peers: Vec<u32>,
}

impl Links {
    /// The overlays that carried packets since an earlier look.
    pub fn carrying_since(&self, before: Option<&Self>) -> Vec<Overlay> {
        let grew = |overlay: &&Overlay| {
            let mut before = before.into_iter().flat_map(|links| &links.overlays);
            let known = before.find(|known| known.name == overlay.name);
            overlay.packets > known.map_or(0, |known| known.packets)
        };
        self.overlays.iter().filter(grew).cloned().collect()
    }
}

/// A link that wraps packets into others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Overlay {
    /// Its name, such as `flannel.1`.
    pub name: String,
    /// `vxlan`, `geneve`, `wireguard`, `ipip`, `sit` or `gre`.
    pub kind: String,
    /// Packets that it carried so far, in both directions.
    pub packets: u64,
}

/// The network of a Kubernetes node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClusterNetwork {
    /// What connects pods.
    pub plugin: Plugin,
    /// How the addresses of services lead to pods.
    pub services: Reading<Services>,
}

/// A network plugin (CNI).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plugin {
    /// The name of its configuration, such as `cbr0`.
    pub name: String,
    /// The programs that set up a pod's network, in order, such as `flannel`, `portmap`.
    pub types: Vec<String>,
}

/// What balances services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Services {
    /// The mode of kube-proxy: `iptables`, `iptables-legacy`, `nftables` or `ipvs`.
    pub mode: String,
    /// Rules, elements or virtual servers: one for each port of a service.
    pub rules: Reading<u64>,
}

impl Services {
    /// The series of `bench network` with services in that mode.
    pub fn series(&self) -> Option<&'static str> {
        match self.mode.as_str() {
            "iptables" => Some("services-iptables"),
            "iptables-legacy" => Some("services-legacy"),
            "nftables" => Some("services-nft"),
            "ipvs" => Some("services-ipvs"),
            _ => None,
        }
    }
}

/// The path of `bench network` that is most like the way out of a network namespace: an overlay of that kind,
/// else services in that mode, else a node that only routes.
pub fn path_like(overlays: &[Overlay], services: Option<&Services>) -> String {
    match (overlays.first(), services) {
        (Some(overlay), _) => format!("nodes-{}", overlay.kind),
        (None, Some(services)) => services.series().unwrap_or("routed").to_owned(),
        (None, None) => "routed".to_owned(),
    }
}

/// The connection table of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ConntrackLimit {
    /// How many connections each namespace may have in its table; 0 means no limit.
    pub most: u64,
    /// The table of the host's own namespace.
    pub table: Conntrack,
}

/// The connection table of one network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Conntrack {
    /// Connections in it.
    pub entries: u64,
    /// What was refused so far, where the kernel tells (`CONFIG_NF_CONNTRACK_PROCFS`).
    #[serde(flatten)]
    pub refused: Option<Refused>,
}

/// What found no place in a connection table so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Refused {
    /// First packets dropped because their connection could not be put in.
    pub dropped: u64,
    /// Connections thrown out so far to make room for new ones.
    pub dropped_early: u64,
    /// Connections that could not be put in so far.
    pub insert_failed: u64,
}

/// The network namespace of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DatabaseNetwork {
    /// Whether it is another one than that of this program.
    pub own_namespace: bool,
    /// The link that its packets leave by.
    pub way: Reading<Way>,
    /// Its connection table.
    pub conntrack: Reading<Conntrack>,
    /// Its clients' TCP connections, at that moment; none in it where all clients use Unix sockets.
    #[serde(default = "Reading::<Vec<ClientConnection>>::not_captured")]
    pub clients: Reading<Vec<ClientConnection>>,
}

/// One TCP connection of a client, as the server's kernel sees it (`tcp_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientConnection {
    /// The kernel's number of the socket since boot, which is never used again.
    pub cookie: u64,
    /// Whether the client is in the same network namespace: by a loopback address, or by the server's own.
    pub is_local: bool,
    /// The smoothed round-trip time, µs; none until a segment was answered. A client answers a segment by
    /// its next request, or after up to 40 ms: its think time may be in it.
    pub rtt_us: Option<u32>,
    /// The shortest round trip of the last minutes, µs (`tcp_min_rtt_wlen`, 300 s); before kernel 4.9 unknown.
    pub min_rtt_us: Option<u32>,
    /// Segments sent again so far.
    pub retransmits: u32,
    /// The largest segment that may be sent, bytes of data.
    pub segment_bytes: u32,
    /// What was received so far; before kernel 4.6 unknown, as is the next.
    pub received: Option<Segments>,
    /// What was sent so far.
    pub sent: Option<Segments>,
}

/// Data that a connection carried one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Segments {
    /// Segments with data; the kernel's count is 32 bits wide.
    pub count: u32,
    /// The data.
    pub bytes: u64,
}

/// What lies between a database and its clients over TCP in a window. A Unix socket has no round trip: it
/// is not in this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientNetwork {
    /// TCP connections of clients when the window closed.
    pub client_connections: Reading<u32>,
    /// The median of their smoothed round-trip times, of those that asked something in the window if any
    /// did.
    pub client_rtt_us_p50: Reading<f64>,
    /// Of 100 of them, 99 have no longer one.
    pub client_rtt_us_p99: Reading<f64>,
    /// Segments sent again to them in the window.
    pub client_retransmits: Reading<u64>,
    /// How often a message went to the database and one came back, for one request: modelled, by the segments
    /// that carried them.
    pub round_trips_per_request: Reading<Interval>,
    /// The round trips of one request: modelled. Low by the shortest round trips, high by smoothed ones.
    pub network_per_request_us: Reading<Interval>,
    /// For how long a thread waits for its client, for each request.
    pub idle_per_request_us: Reading<f64>,
    /// What is left of that without the network: the client's own time.
    pub client_per_request_us: Reading<Interval>,
}

impl ClientNetwork {
    /// A network of which nothing is known, for this reason.
    pub fn unknown(why: &str) -> Self {
        Self {
            client_connections: Reading::absent(why),
            client_rtt_us_p50: Reading::absent(why),
            client_rtt_us_p99: Reading::absent(why),
            client_retransmits: Reading::absent(why),
            round_trips_per_request: Reading::absent(why),
            network_per_request_us: Reading::absent(why),
            idle_per_request_us: Reading::absent(why),
            client_per_request_us: Reading::absent(why),
        }
    }
}

/// The link that packets leave a namespace by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Way {
    /// Its name in that namespace.
    pub device: String,
    /// Its number there.
    pub index: Reading<u32>,
    /// Packets so far, in both directions.
    pub packets: u64,
    /// Packets that it dropped so far, in both directions.
    pub dropped: u64,
}
