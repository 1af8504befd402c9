//! One namespace: packets pass its loopback interface.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::client;
use crate::SceneError;
use std::net::Ipv4Addr;

pub(super) const PATH: PathKind = PathKind {
    id: "loopback",
    summary: "client and server in one namespace, over its loopback interface",
    configuration: &[("links", "lo")],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    let client = client()?;
    let server = client.again()?;
    Ok(Ends::new(client, server, Ipv4Addr::LOCALHOST, Vec::new()))
}
