//! A service by an eBPF program that gives a connecting socket the address of the server.

use super::bpf::Programs;
use super::ends::Ends;
use super::kind::{Counts, PORT, PathKind};
use super::parts::{SERVER, pod_address, pods_on_one_node};
use super::services::{NOBODY, SERVICE, others};
use crate::SceneError;
use crate::group::Group;

pub(super) const PATH: PathKind = PathKind {
    id: "services-ebpf",
    summary: "two pods, routed; an eBPF program gives the client's socket the server of one of so \
              many services when it connects",
    configuration: &[("links", "veth"), ("ip_forward", "1"), ("program", "cgroup/connect4")],
    counts: Some(Counts::Services),
    build,
};

fn build(services: u32) -> Result<Ends, SceneError> {
    let [client, server, node] = pods_on_one_node()?;
    let group = Group::for_clients()?;
    let mut programs = Programs::load()?;
    let mut known = others(services).map(|service| (service, NOBODY)).collect::<Vec<_>>();
    known.push((SERVICE, pod_address(SERVER)));
    programs.balance(group.unified()?, &known, PORT)?;
    let mut ends = Ends::new(client, server, SERVICE, vec![node]);
    ends.group = Some(group);
    ends.rest.programs.push(programs);
    Ok(ends)
}
