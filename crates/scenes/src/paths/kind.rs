//! What a path is.

use super::ends::{Ends, Rest};
use crate::SceneError;
use crate::network::Network;
use std::net::Ipv4Addr;

/// The port of every server on a path: each path has namespaces of its own, so it is always free.
pub const PORT: u16 = 7000;

/// A kind of path.
#[derive(Clone, Copy)]
pub struct PathKind {
    /// Its name, kebab-case; also that of its file.
    pub id: &'static str,
    /// What packets pass, in one line.
    pub summary: &'static str,
    /// What is in force in it, as names and values.
    pub configuration: &'static [(&'static str, &'static str)],
    /// What its number counts, where it has one: services or rules.
    pub counts: Option<Counts>,
    /// Builds it, with so many services or rules.
    pub(super) build: fn(u32) -> Result<Ends, SceneError>,
}

/// What the number of a path counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Services of a cluster; the one that clients use comes last.
    Services,
    /// Rules that each packet passes before the one that accepts it.
    Rules,
}

/// A path that is there; gone when dropped.
pub struct NetworkPath {
    /// Where clients run.
    pub client: Network,
    /// Where servers run, on [`PORT`].
    pub server: Network,
    /// The address that clients connect to.
    pub address: Ipv4Addr,
    _rest: Rest,
}

impl PathKind {
    /// Builds one; `count` is that of its services or rules, and means nothing to others.
    pub fn build(&self, count: u32) -> Result<NetworkPath, SceneError> {
        let Ends { client, server, address, group, rest } = (self.build)(count)?;
        Ok(NetworkPath {
            client: Network::of(client, group),
            server: Network::of(server, None),
            address,
            _rest: rest,
        })
    }
}
