//! The sockets on which a process listens, from `/proc`: exact whatever its configuration says.

use crate::endpoint::Listening;
use crate::engine::Asking;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use untax_core::Reading::{self, Absent, Denied, Present};
use untax_host::{Host, process};

/// A socket that waits for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listener {
    /// A Unix socket, by its path as its process named it.
    Unix(String),
    /// A TCP socket.
    Tcp(Listening),
}

/// Descriptors that are looked at: listening sockets are opened early, so their numbers are low.
const MOST_DESCRIPTORS: usize = 4096;

/// `__SO_ACCEPTCON` of `linux/net.h`, as `/proc/net/unix` prints it.
const LISTENING_UNIX: &str = "00010000";

/// The sockets for clients that `pid` listens on. Where its descriptors may not be looked at, a
/// Unix socket that looks like one of such a server, if it is the only one in that network
/// namespace.
pub(crate) fn of(
    host: &Host,
    pid: u32,
    asking: &Asking,
    known: Option<&Listening>,
) -> Reading<Vec<Listener>> {
    let unix = listening_sockets(host, pid, "unix", parse_unix);
    match host.names(&format!("/proc/{pid}/fd")) {
        Present(names) => Present(own(host, pid, asking, &names, &unix, known)),
        Denied(what) => {
            let fits = |l: &&Listener| matches!(l, Listener::Unix(p) if (asking.looks_so)(p));
            let mut fitting = unix.values().filter(fits).cloned();
            match (fitting.next(), fitting.next()) {
                (Some(only), None) => Present(vec![only]),
                _ => Denied(format!("{what}, which would name the server's socket")),
            }
        }
        gap => gap.map(|_| Vec::new()),
    }
}

/// Of the sockets that listen, those among a process's descriptors: Unix sockets, or TCP where
/// there is none. The kernel walks a table of MiB, made for all connections of the machine, to tell
/// which of them listen: not for what is known.
fn own(
    host: &Host,
    pid: u32,
    asking: &Asking,
    descriptors: &[String],
    unix: &BTreeMap<String, Listener>,
    known: Option<&Listening>,
) -> Vec<Listener> {
    let links = links(host, pid, descriptors);
    let among = |listening: &BTreeMap<String, Listener>| -> Vec<Listener> {
        links.iter().filter_map(|link| listening.get(inode(link)?).cloned()).collect()
    };
    let mut found = among(unix);
    found.retain(|l| matches!(l, Listener::Unix(path) if (asking.is_socket)(path)));
    if found.is_empty() && asking.over_tcp {
        let is_open = |known: &&Listening| links.iter().any(|l| inode(l) == Some(&known.inode));
        found.extend(known.filter(is_open).cloned().map(Listener::Tcp));
    }
    for kind in ["tcp", "tcp6"] {
        if found.is_empty() && asking.over_tcp {
            found = among(&listening_sockets(host, pid, kind, parse_tcp));
        }
    }
    found
}

/// The TCP ports that a process listens on, each once; none of one with Unix sockets alone. Where no
/// socket is known that it listens on, another process does that for it (Oracle), or it has too many.
pub fn listening_ports(host: &Host, pid: u32) -> Reading<Vec<u16>> {
    host.names(&format!("/proc/{pid}/fd")).and_then(|descriptors| {
        let links = links(host, pid, &descriptors);
        let open: BTreeSet<&str> = links.iter().filter_map(|link| inode(link)).collect();
        process::listening_sockets(pid).and_then(|lines| {
            let sockets = lines.iter().filter_map(|line| parse_tcp(line));
            let ports = sockets.filter_map(|(inode, listener)| match listener {
                Listener::Tcp(listening) if open.contains(&*inode) => {
                    Some(listening.address.port())
                }
                _ => None,
            });
            let ports: BTreeSet<u16> = ports.collect();
            let unix = || listening_sockets(host, pid, "unix", parse_unix);
            if ports.is_empty() && !unix().keys().any(|inode| open.contains(&**inode)) {
                return no_socket();
            }
            Present(ports.into_iter().collect())
        })
    })
}

/// What a process's descriptors are open as, the lowest first.
fn links(host: &Host, pid: u32, descriptors: &[String]) -> Vec<String> {
    let mut numbers: Vec<u32> = descriptors.iter().filter_map(|n| n.parse().ok()).collect();
    numbers.sort_unstable();
    let link = |number| host.link(&format!("/proc/{pid}/fd/{number}")).into_value();
    numbers.into_iter().take(MOST_DESCRIPTORS).filter_map(link).collect()
}

fn inode(link: &str) -> Option<&str> {
    link.strip_prefix("socket:[")?.strip_suffix(']')
}

/// Sockets that listen in a process's network namespace, by inode.
fn listening_sockets(
    host: &Host,
    pid: u32,
    kind: &str,
    parse: impl Fn(&str) -> Option<(String, Listener)>,
) -> BTreeMap<String, Listener> {
    let text = host.text(&format!("/proc/{pid}/net/{kind}")).into_value().unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// `Num RefCount Protocol Flags Type St Inode Path`; the path may hold spaces.
fn parse_unix(line: &str) -> Option<(String, Listener)> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start();
        let (word, tail) = rest.split_at(rest.find(' ')?);
        rest = tail;
        Some(word)
    };
    let (_number, _references, _protocol) = (field()?, field()?, field()?);
    let flags = field()?;
    let (_kind, _state, inode) = (field()?, field()?, field()?.to_owned());
    let path = rest.strip_prefix(' ')?;
    (flags == LISTENING_UNIX && !path.is_empty()).then(|| (inode, Listener::Unix(path.to_owned())))
}

/// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`.
fn parse_tcp(line: &str) -> Option<(String, Listener)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (address, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (host, port) = address.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let inode = (*inode).to_owned();
    let address = SocketAddr::new(parse_ip(host)?, port);
    (*state == process::TCP_LISTEN)
        .then(|| (inode.clone(), Listener::Tcp(Listening { inode, address })))
}

/// The kernel prints an address as 32-bit words in the byte order of the machine.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok();
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes()))),
        32 => {
            let mut bytes = [0; 16];
            for (i, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(i * 8)?.to_ne_bytes());
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Where to connect to reach a listening address from the same machine.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The reason when a server has no socket that fits.
pub(crate) fn no_socket<T>() -> Reading<T> {
    Absent("the server listens on no local socket".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    #[test]
    fn listening_sockets_are_told_from_connected_ones() {
        let listening =
            "0000000000000000: 00000002 00000000 00010000 0001 01 31337 /run/a b/.s.PGSQL.5432";
        let connected =
            "0000000000000000: 00000003 00000000 00000000 0001 03 31338 /run/.s.PGSQL.5432";
        assert_eq!(
            parse_unix(listening),
            Some(("31337".to_owned(), Listener::Unix("/run/a b/.s.PGSQL.5432".to_owned())))
        );
        assert_eq!(parse_unix(connected), None);
        assert_eq!(parse_unix("Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_are_in_machine_order() {
        let line = "   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    110        0 4242 1 0000000000000000 100 0 0 10 0";
        assert_eq!(
            parse_tcp(line),
            Some((
                "4242".to_owned(),
                Listener::Tcp(Listening {
                    inode: "4242".to_owned(),
                    address: "127.0.0.1:6379".parse().unwrap()
                })
            ))
        );
        assert_eq!(parse_ip("00000000000000000000000001000000"), Some("::1".parse().unwrap()));
        assert_eq!(reachable("[::]:1".parse().unwrap()), "[::1]:1".parse().unwrap());
    }

    #[test]
    fn a_known_socket_is_believed_as_long_as_it_is_open() {
        let (open, asking) = (TcpListener::bind("127.0.0.1:0").unwrap(), redis());
        let address = open.local_addr().unwrap();
        let found = |known: Option<&Listening>| -> Vec<Listening> {
            let found = of(&Host::live(), std::process::id(), asking, known).into_value().unwrap();
            let tcp = found.into_iter().filter_map(|listener| match listener {
                Listener::Tcp(listening) => Some(listening),
                Listener::Unix(_) => None,
            });
            tcp.collect()
        };
        let all = found(None);
        let mut known = all.into_iter().find(|found| found.address == address).unwrap();
        known.address.set_port(1);
        assert_eq!(found(Some(&known)), [known.clone()], "nothing was looked up");
        drop(open);
        assert!(!found(Some(&known)).contains(&known));
    }

    #[test]
    fn a_process_listens_on_its_own_ports() {
        let own = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
        let port = own.as_ref().unwrap().local_addr().unwrap().port();
        let own_ports = || listening_ports(&Host::live(), std::process::id()).into_value();
        let ports = || own_ports().unwrap_or_default();
        assert!(ports().contains(&port));
        drop(own);
        assert!(!ports().contains(&port));
        assert!(!listening_ports(&Host::live(), u32::MAX).is_present());
    }

    fn redis() -> &'static Asking {
        crate::catalogue::by_id("redis").unwrap().asking.as_ref().unwrap()
    }

    proptest! {
        #[test]
        fn garbage_is_refused(line in "\\PC*") {
            prop_assert!(parse_unix(&line).is_none_or(|(_, l)| matches!(l, Listener::Unix(_))));
            prop_assert!(parse_tcp(&line).is_none_or(|(_, l)| matches!(l, Listener::Tcp(_))));
        }
    }
}
