//! Two macvlan links on one link of a node.

use super::ends::Ends;
use super::kind::PathKind;
use super::parts::links_on_one;
use crate::SceneError;

pub(super) const PATH: PathKind = PathKind {
    id: "macvlan",
    summary: "two pods with macvlan links on one link of their node",
    configuration: &[("links", "macvlan mode bridge")],
    counts: None,
    build,
};

fn build(_: u32) -> Result<Ends, SceneError> {
    links_on_one("macvlan", "bridge")
}
