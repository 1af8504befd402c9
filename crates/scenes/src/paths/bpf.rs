//! The eBPF programs of paths: loaded, configured, attached. A program that is attached to a link goes with
//! the link's namespace; one that is attached to a control group goes with this value.

use crate::SceneError;
use crate::namespace::Namespace;
use libbpf_rs::{
    Link, MapCore, MapFlags, Object, ObjectBuilder, PrintLevel, ProgramMut, TC_INGRESS,
    TcHookBuilder,
};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/paths.bpf.o"));

/// The programs of one node.
pub(super) struct Programs {
    object: Object,
    links: Vec<Link>,
}

/// Where a packet goes next.
pub(super) enum Hop {
    /// Into the namespace at the other end of this link.
    IntoPeer(String),
    /// Out of this link.
    OutOfLink(String),
}

impl Programs {
    /// Loads them; they run nowhere yet.
    pub fn load() -> Result<Self, SceneError> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
        let open = ObjectBuilder::default().open_memory(OBJECT).map_err(refused("open"))?;
        let object = open.load().map_err(refused("load"))?;
        Ok(Self { object, links: Vec::new() })
    }

    /// Routes what comes in by these links of a node, by its destination.
    pub fn route(
        &mut self,
        node: &Namespace,
        hops: &[(Ipv4Addr, Hop)],
        links: &[String],
    ) -> Result<(), SceneError> {
        for (address, hop) in hops {
            let (link, how) = match hop {
                Hop::IntoPeer(link) => (link, 1_u32),
                Hop::OutOfLink(link) => (link, 2),
            };
            let value = [node_link(node, link)?.to_ne_bytes(), how.to_ne_bytes()].concat();
            self.set("hops", &address.octets(), &value)?;
        }
        let program = self.program("route")?;
        let fd = program.as_fd();
        for link in links {
            let index = node_link(node, link)?;
            let attach = || {
                let mut hook = TcHookBuilder::new(fd).ifindex(index.cast_signed()).hook(TC_INGRESS);
                hook.create().and_then(|mut hook| hook.attach()).map(drop)
            };
            node.within(attach)?.map_err(refused("attach to a link"))?;
        }
        Ok(())
    }

    /// Gives sockets of a control group the server behind each of these services, on one port.
    pub fn balance(
        &mut self,
        group: &str,
        services: &[(Ipv4Addr, Ipv4Addr)],
        port: u16,
    ) -> Result<(), SceneError> {
        let endpoint = |address: &Ipv4Addr| {
            let port = u32::from(port.to_be());
            [address.octets(), port.to_ne_bytes()].concat()
        };
        for (service, server) in services {
            self.set("services", &endpoint(service), &endpoint(server))?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(group, flags, Mode::empty())
            .map_err(|errno| crate::error::at(group)(errno.into()))?;
        let link = self.program("balance")?.attach_cgroup(directory.as_raw_fd());
        let link = link.map_err(refused("attach to a control group of version 2"))?;
        self.links.push(link);
        Ok(())
    }

    fn set(&self, map: &str, key: &[u8], value: &[u8]) -> Result<(), SceneError> {
        let map = self.object.maps().find(|known| known.name() == map);
        let map =
            map.ok_or_else(|| refused("find a map of")(libbpf_rs::Error::from_raw_os_error(2)))?;
        map.update(key, value, MapFlags::ANY).map_err(refused("fill a map of"))
    }

    fn program(&self, name: &str) -> Result<ProgramMut<'_>, SceneError> {
        let program = self.object.progs_mut().find(|program| program.name() == name);
        program.ok_or_else(|| refused("find")(libbpf_rs::Error::from_raw_os_error(2)))
    }
}

/// The number of a link in its namespace.
fn node_link(node: &Namespace, link: &str) -> Result<u32, SceneError> {
    let index = || {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        netdevice::name_to_index(&socket, link)
    };
    let index = node.within(index)?;
    index.map_err(|errno| SceneError::Host { why: format!("no link {link} in a node: {errno}") })
}

fn refused(what: &'static str) -> impl Fn(libbpf_rs::Error) -> SceneError {
    move |error| SceneError::Lacking {
        what: "eBPF programs of this kind".to_owned(),
        why: format!("cannot {what} one: {error}"),
    }
}
