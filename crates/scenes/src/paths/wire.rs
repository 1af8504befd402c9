//! Two namespaces with a pair of virtual links between them: what the host network is between two nodes.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::{SERVER, client, node_address, wire};
use crate::SceneError;
use crate::namespace::Namespace;

pub(super) const PATH: PathKind = PathKind {
    id: "wire",
    summary: "two namespaces with one veth pair between them, as host networks of two nodes",
    configuration: &[("links", "veth")],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    let (client, server) = (client()?, Namespace::make()?);
    wire(&client, &server)?;
    Ok(Ends::new(client, server, node_address(SERVER), Vec::new()))
}
