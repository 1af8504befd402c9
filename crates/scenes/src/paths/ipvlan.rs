//! Two ipvlan links on one link of a node.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::links_on_one;
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "ipvlan",
    summary: "two pods with ipvlan links on one link of their node",
    configuration: &[("links", "ipvlan mode l2")],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    links_on_one("ipvlan", "l2")
}
