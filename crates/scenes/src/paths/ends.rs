//! The two ends of a path that is being built.

use super::bpf::Programs;
use crate::group::Group;
use crate::namespace::Namespace;
use std::net::Ipv4Addr;

/// The two ends of a path, and all that it needs meanwhile.
pub(super) struct Ends {
    pub client: Namespace,
    pub server: Namespace,
    pub address: Ipv4Addr,
    /// The control group of clients, where a program is attached to one.
    pub group: Option<Group>,
    pub rest: Rest,
}

/// What a path needs beside its ends.
#[derive(Default)]
pub(super) struct Rest {
    pub namespaces: Vec<Namespace>,
    pub programs: Vec<Programs>,
}

impl Ends {
    /// Ends without a control group.
    pub fn new(
        client: Namespace,
        server: Namespace,
        address: Ipv4Addr,
        namespaces: Vec<Namespace>,
    ) -> Self {
        let rest = Rest { namespaces, programs: Vec::new() };
        Self { client, server, address, group: None, rest }
    }
}
