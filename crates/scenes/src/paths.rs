//! Ways for packets between a client and a server, built on one machine in network namespaces.
//!
//! Each path is one file. It is built so that a connection proves it: the server is reached through what
//! the path is named after, or not at all. A service's address belongs to no interface, an eBPF router
//! stands on a node that forwards nothing itself, and an overlay's wire has no route to the pods.
//!
//! Nothing of it is on the host itself: links, rules and programs live in namespaces without a name, which
//! the kernel removes with the last process that uses them, however that ends. The one exception, a
//! control group of clients, has a shell that removes it.

mod bpf;
mod bridge;
mod conntrack;
mod ebpf_routed;
mod ends;
mod ipvlan;
mod kind;
mod loopback;
mod macvlan;
mod netkit;
mod nodes_ebpf;
mod nodes_geneve;
mod nodes_routed;
mod nodes_services;
mod nodes_vxlan;
mod parts;
mod policies;
mod policies_stateful;
mod routed;
mod services;
mod services_ebpf;
mod services_iptables;
mod services_ipvs;
mod services_legacy;
mod services_nft;
mod wire;

pub use kind::{Counts, NetworkPath, PORT, PathKind};

/// All of them, the shortest first.
pub static PATHS: &[PathKind] = &[
    loopback::PATH,
    wire::PATH,
    bridge::PATH,
    routed::PATH,
    macvlan::PATH,
    ipvlan::PATH,
    netkit::PATH,
    ebpf_routed::PATH,
    conntrack::PATH,
    services_iptables::PATH,
    services_legacy::PATH,
    services_nft::PATH,
    services_ipvs::PATH,
    services_ebpf::PATH,
    policies::PATH,
    policies_stateful::PATH,
    nodes_routed::PATH,
    nodes_ebpf::PATH,
    nodes_services::PATH,
    nodes_vxlan::PATH,
    nodes_geneve::PATH,
];

impl PathKind {
    /// The kind of an id.
    pub fn find(id: &str) -> Option<&'static Self> {
        PATHS.iter().find(|path| path.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::net::TcpListener;
    use std::process::Command;
    use std::thread;

    #[test]
    fn every_path_has_an_id_and_a_file_of_its_own() {
        for path in PATHS {
            assert!(std::ptr::eq(PathKind::find(path.id).unwrap(), path), "{} twice", path.id);
            let names: Vec<&str> = path.configuration.iter().map(|(name, _)| *name).collect();
            assert!(names.iter().all(|name| !name.is_empty()), "{}", path.id);
        }
    }

    /// What clients read through a path; the reason where it cannot be built here.
    fn exchange(kind: &PathKind, count: u32) -> Result<String, String> {
        let path = kind.build(count).map_err(|error| error.to_string())?;
        let listener = path.server.within(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)));
        let listener = listener.unwrap().unwrap();
        let answer = thread::spawn(move || listener.accept().unwrap().0.write_all(b"here"));
        let read = format!("cat </dev/tcp/{}/{PORT}", path.address);
        let enter = path.client.enter_command();
        let mut client = Command::new(&enter[0]);
        let output =
            client.args(&enter[1..]).args(["timeout", "5", "bash", "-c", &read]).output().unwrap();
        if output.status.success() {
            answer.join().unwrap().unwrap();
        }
        Ok(String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn a_client_reaches_the_server_through_every_path_that_this_kernel_has() {
        if !crate::account::is_root() {
            return;
        }
        for kind in PATHS {
            match exchange(kind, 3) {
                Ok(read) => assert_eq!(read, "here", "{}", kind.id),
                Err(why) => {
                    assert!(MAY_LACK.contains(&kind.id), "{}: {why}", kind.id);
                    println!("{}: {why}", kind.id);
                }
            }
        }
    }

    /// Paths that some kernels have no modules for, or some machines no programs.
    const MAY_LACK: [&str; 8] = [
        "ipvlan",
        "netkit",
        "nodes-geneve",
        "services-ipvs",
        "services-iptables",
        "services-legacy",
        "policies",
        "policies-stateful",
    ];
}
