//! TCP connections with what the kernel measured of each (`tcp_info`), by `NETLINK_SOCK_DIAG`, as `ss -ti`
//! reads them.
//!
//! The crate netlink-packet-sock-diag was weighed: its `tcp_info` has one length, but each kernel has its own,
//! and what an older one lacks is unknown here, not an error.
//!
//! Source of all numbers: `linux/sock_diag.h`, `linux/inet_diag.h`, `linux/tcp.h`.

use crate::netlink::{self, Attributes, u32_at};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};
use untax_core::network::{ClientConnection, Segments};

/// Connections beyond so many are not read, to bound what it costs: some 400 bytes each, and 18 to 45 ms for
/// 4000 of them.
const MOST: usize = 10_000;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;

/// `AF_INET`, `AF_INET6`: those of an IPv6 socket may have IPv4 addresses.
const FAMILIES: [u8; 2] = [2, 10];

/// `IPPROTO_TCP`.
const TCP: u8 = 6;

/// `INET_DIAG_INFO`, and its bit among the extensions that are asked for.
const INFO: u16 = 2;
const ASK_INFO: u8 = 1 << (INFO - 1);

/// `1 << TCP_ESTABLISHED`.
const ESTABLISHED: u32 = 1 << 1;

/// Lengths of `inet_diag_req_v2` and `inet_diag_msg`.
const REQUEST: usize = 56;
const MESSAGE: usize = 72;

/// The established connections to these ports, in the network namespace of the process `pid` of the running
/// machine. Like `ss`, this may make the kernel load its module `tcp_diag`.
pub fn connections(pid: u32, ports: &[u16]) -> Reading<Vec<ClientConnection>> {
    let mut connections = Vec::new();
    if ports.is_empty() {
        return Present(connections);
    }
    let mut read = || -> Result<(), Errno> {
        let socket = open_in_network_of(pid)?;
        for port in ports {
            for family in FAMILIES {
                dump(&socket, family, *port, &mut connections)?;
            }
        }
        Ok(())
    };
    let what = || format!("the TCP connections in the network namespace of process {pid}");
    match read() {
        Ok(()) => Present(connections),
        Err(Errno::PERM | Errno::ACCESS) => Denied(what()),
        Err(Errno::NOENT | Errno::SRCH) => Absent("the process ended".to_owned()),
        Err(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::OPNOTSUPP) => {
            Absent("this kernel lists no TCP connections (CONFIG_INET_DIAG)".to_owned())
        }
        Err(errno) => Failed(format!("{}: {errno}", what())),
    }
}

/// A socket that speaks of the network namespace of a process. A thread of its own enters that, and ends: a
/// socket belongs to the namespace that it was made in, and neither this thread nor the process notices.
fn open_in_network_of(pid: u32) -> Result<OwnedFd, Errno> {
    let open = move || {
        let path = |process: &str| format!("/proc/{process}/ns/net");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let its = rustix::fs::open(path(&pid.to_string()), flags, Mode::empty())?;
        let own = rustix::fs::open(path("self"), flags, Mode::empty())?;
        let [a, b] = [rustix::fs::fstat(&its)?, rustix::fs::fstat(&own)?];
        if (a.st_dev, a.st_ino) != (b.st_dev, b.st_ino) {
            move_into_link_name_space(its.as_fd(), Some(LinkNameSpaceType::Network))?;
        }
        netlink::open(SOCK_DIAG)
    };
    let entering = thread::Builder::new().name("untax-network".to_owned()).spawn(open);
    entering.map_err(|_| Errno::AGAIN)?.join().map_err(|_| Errno::IO)?
}

fn dump(
    socket: &OwnedFd,
    family: u8,
    port: u16,
    connections: &mut Vec<ClientConnection>,
) -> Result<(), Errno> {
    let dumped = netlink::dump(socket, BY_FAMILY, &request(family, port), |kind, body| {
        take(kind, body, connections);
        Ok(())
    });
    match dumped {
        // A kernel without IPv6 knows no such family.
        Err(Errno::NOENT) if family == FAMILIES[1] => Ok(()),
        Err(Errno::NOENT) => Err(Errno::PROTONOSUPPORT),
        dumped => dumped,
    }
}

fn request(family: u8, port: u16) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    bytes[0] = family;
    bytes[1] = TCP;
    bytes[2] = ASK_INFO;
    bytes[4..8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    bytes[8..10].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Adds the connection that a message tells of, up to [`MOST`].
fn take(kind: u16, body: &[u8], connections: &mut Vec<ClientConnection>) {
    if kind == BY_FAMILY && connections.len() < MOST {
        connections.extend(connection(body));
    }
}

/// One `inet_diag_msg`, with the attributes behind it.
fn connection(message: &[u8]) -> Option<ClientConnection> {
    let family = *message.first()?;
    let address = |at: usize| address(family, message.get(at..at + 16)?.try_into().ok()?);
    let (own, other) = (address(8)?, address(24)?);
    let cookie = u64::from(u32_at(message, 44)?) | u64::from(u32_at(message, 48)?) << 32;
    let mut attributes = Attributes(message.get(MESSAGE..)?);
    let (_, info) = attributes.find(|(kind, _)| *kind == INFO)?;
    // A kernel tells what it does not know yet as nothing, or as the longest time.
    let time = |at| u32_at(info, at).filter(|time| *time != 0 && *time != u32::MAX);
    Some(ClientConnection {
        cookie,
        is_local: own == other || other.is_loopback(),
        rtt_us: time(68),
        min_rtt_us: time(148),
        retransmits: u32_at(info, 100)?,
        segment_bytes: u32_at(info, 16)?,
        received: segments(info, 152, 128),
        sent: segments(info, 156, 120),
    })
}

fn segments(info: &[u8], count_at: usize, bytes_at: usize) -> Option<Segments> {
    let bytes = u64::from_ne_bytes(info.get(bytes_at..bytes_at + 8)?.try_into().ok()?);
    Some(Segments { count: u32_at(info, count_at)?, bytes })
}

fn address(family: u8, bytes: [u8; 16]) -> Option<IpAddr> {
    if family == FAMILIES[0] {
        let [a, b, c, d, ..] = bytes;
        return Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)));
    }
    (family == FAMILIES[1]).then(|| Ipv6Addr::from(bytes).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::made::{end, message, refusal};
    use crate::netlink::{Listed, parse};
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// A connection from 10.0.0.2 to 10.0.0.1, whose `tcp_info` has this length.
    fn established(length: usize) -> Vec<u8> {
        let mut body = vec![0; MESSAGE];
        body[0] = FAMILIES[0];
        body[8..12].copy_from_slice(&[10, 0, 0, 1]);
        body[24..28].copy_from_slice(&[10, 0, 0, 2]);
        body[44..48].copy_from_slice(&7_u32.to_ne_bytes());
        body[48..52].copy_from_slice(&1_u32.to_ne_bytes());
        // Another attribute first.
        body.extend([5_u16.to_ne_bytes(), 8_u16.to_ne_bytes()].concat());
        body.extend([0; 4]);
        let mut info = vec![0; 160];
        let numbers = [(16, 1448_u32), (68, 5200), (100, 3), (120, 800), (128, 700)];
        for (at, value) in numbers.into_iter().chain([(148, u32::MAX), (152, 40), (156, 50)]) {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        info.truncate(length);
        body.extend([(4 + length as u16).to_ne_bytes(), INFO.to_ne_bytes()].concat());
        body.extend(info);
        message(BY_FAMILY, &body)
    }

    fn parsed(bytes: &[u8]) -> (Result<Listed, Errno>, Vec<ClientConnection>) {
        let mut connections = Vec::new();
        let listed = parse(bytes, &mut |kind, body| {
            take(kind, body, &mut connections);
            Ok(())
        });
        (listed, connections)
    }

    #[test]
    fn what_a_kernel_does_not_know_is_not_zero() {
        let all = [established(160), established(104), end()].concat();
        let (listed, connections) = parsed(&all);
        assert_eq!(listed, Ok(Listed::All));
        let newer = ClientConnection {
            cookie: (1 << 32) + 7,
            is_local: false,
            rtt_us: Some(5200),
            min_rtt_us: None,
            retransmits: 3,
            segment_bytes: 1448,
            received: Some(Segments { count: 40, bytes: 700 }),
            sent: Some(Segments { count: 50, bytes: 800 }),
        };
        let older = ClientConnection { received: None, sent: None, ..newer };
        assert_eq!(connections, [newer, older]);
        assert_eq!(parsed(&established(60)).1, [], "without a round-trip time there is none");
    }

    #[test]
    fn a_refusal_is_no_empty_list() {
        assert_eq!(parsed(&refusal(-1)).0, Err(Errno::PERM));
        assert!(!connections(u32::MAX, &[5432]).is_present());
        assert_eq!(connections(u32::MAX, &[]), Present(Vec::new()), "it listens on Unix sockets");
    }

    #[test]
    fn connections_of_this_machine_are_seen_with_their_round_trips() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for _ in 0..20 {
            let mut byte = [0];
            client.write_all(b"?").unwrap();
            server.read_exact(&mut byte).unwrap();
            server.write_all(b"!").unwrap();
            client.read_exact(&mut byte).unwrap();
        }
        let seen = connections(std::process::id(), &[port]).into_value().unwrap();
        let [seen] = seen[..] else { panic!("{seen:?}") };
        assert!(seen.is_local && seen.rtt_us.is_some(), "{seen:?}");
        assert_eq!(seen.received, Some(Segments { count: 20, bytes: 20 }));
        assert_eq!(seen.sent.map(|sent| sent.count), Some(20));
        drop((client, server, listener));
        assert_eq!(connections(std::process::id(), &[port]), Present(Vec::new()));
    }

    proptest! {
        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0..240_usize) {
            let _ = parsed(&bytes);
            let mut cut = established(160);
            cut.truncate(at);
            prop_assert!(parsed(&cut).1.is_empty());
        }
    }
}
