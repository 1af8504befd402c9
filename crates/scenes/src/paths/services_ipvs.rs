//! A service by IPVS, as kube-proxy made it in mode `ipvs`.

use super::ends::Ends;
use super::kind::{Counts, PORT, PathKind};
use super::parts::{backend, pods_on_one_node};
use super::services::{NOBODY, SERVICE, others};
use crate::{SceneError, program};

pub(super) const PATH: PathKind = PathKind {
    id: "services-ipvs",
    summary: "two pods, routed; the client uses one of so many services of IPVS",
    configuration: &[
        ("links", "veth"),
        ("ip_forward", "1"),
        ("scheduler", "rr, masquerading"),
        ("net.ipv4.vs.conntrack", "1"),
    ],
    counts: Some(Counts::Services),
    build,
};

fn build(services: u32) -> Result<Ends, SceneError> {
    program::find("ipvsadm", "ipvsadm")?;
    let [client, server, node] = pods_on_one_node()?;
    let mut rules = String::new();
    for service in others(services) {
        rules += &format!("-A -t {service}:{PORT} -s rr\n");
        rules += &format!("-a -t {service}:{PORT} -r {NOBODY}:{PORT} -m\n");
    }
    for kind in ["-t", "-u"] {
        rules += &format!("-A {kind} {SERVICE}:{PORT} -s rr\n");
        rules += &format!("-a {kind} {SERVICE}:{PORT} -r {} -m\n", backend());
    }
    node.run(&["ipvsadm", "-R"], &rules).map_err(|error| match error {
        SceneError::Failed { output_end, .. } => {
            let why = output_end.split(" | ").last().unwrap_or_default().to_owned();
            SceneError::Lacking { what: "IPVS (kernel module ip_vs)".to_owned(), why }
        }
        other => other,
    })?;
    node.sh("echo 1 >/proc/sys/net/ipv4/vs/conntrack")?;
    // IPVS sees packets for addresses of the node itself.
    node.ip(&format!("address add {SERVICE}/32 dev lo\n"))?;
    Ok(Ends::new(client, server, SERVICE, vec![node]))
}
