//! The network of a host and of a database, as far as it is the platform's.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// The virtual links of the host's own network namespace that databases' packets may pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Links that wrap packets into others: overlays and tunnels.
    pub overlays: Vec<Overlay>,
    /// Of each link that leads into another namespace, the number of its other end there.
    pub veth_peers: Vec<u32>,
}

/// A link that wraps packets into others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// Its name, such as `flannel.1`.
    pub name: String,
    /// `vxlan`, `geneve`, `wireguard`, `ipip`, `sit` or `gre`.
    pub kind: String,
    /// Packets that it carried so far, in both directions.
    pub packets: u64,
}

/// The connection table of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConntrackLimit {
    /// How many connections each namespace may have in its table; 0 means no limit.
    pub most: u64,
    /// The table of the host's own namespace.
    pub table: Conntrack,
}

/// The connection table of one network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conntrack {
    /// Connections in it.
    pub entries: u64,
    /// What was refused so far, where the kernel tells (`CONFIG_NF_CONNTRACK_PROCFS`).
    #[serde(flatten)]
    pub refused: Option<Refused>,
}

/// What found no place in a connection table so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// First packets dropped because their connection could not be put in.
    pub dropped: u64,
    /// Connections thrown out so far to make room for new ones.
    pub dropped_early: u64,
    /// Connections that could not be put in so far.
    pub insert_failed: u64,
}

/// The network namespace of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseNetwork {
    /// Whether it is another one than that of this program.
    pub own_namespace: bool,
    /// The link that its packets leave by.
    pub way: Reading<Way>,
    /// Its connection table.
    pub conntrack: Reading<Conntrack>,
}

/// The link that packets leave a namespace by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
