//! `/proc/PID/net/snmp` and `netstat`: what TCP counts in the network namespace of a process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::os::unix::fs::FileExt;
use untax_core::Reading::{self, Failed, Present};
use untax_core::database::TcpCounts;

/// Parses both files: lines in pairs, names first, then numbers in the same order.
pub fn parse(snmp: &str, netstat: &str) -> Option<TcpCounts> {
    Some(TcpCounts {
        sent_segments: sent_segments(snmp)?,
        retransmitted_segments: field(snmp, "Tcp:", "RetransSegs")?,
        timeouts: field(netstat, "TcpExt:", "TCPTimeouts")?,
        listen_overflows: field(netstat, "TcpExt:", "ListenOverflows")?,
    })
}

/// What was sent so far in the network namespace of a process: asked so often on the running machine
/// that its file stays open, and with it the namespace, should the process end meanwhile.
pub struct Sent(File);

impl Sent {
    /// Nothing where the process has ended, or may not be looked into.
    pub fn from(pid: u32) -> Option<Self> {
        File::open(format!("/proc/{pid}/net/snmp")).ok().map(Self)
    }

    /// TCP segments.
    pub fn segments(&self) -> Option<u64> {
        // The kernel writes it anew for who reads from its beginning: some 2 KiB, all in one read.
        let mut text = [0; 8192];
        let bytes = self.0.read_at(&mut text, 0).ok()?;
        sent_segments(&String::from_utf8_lossy(text.get(..bytes)?))
    }
}

/// The lines of `/proc/PID/net/tcp` and `tcp6` for sockets that listen, in the network namespace of a
/// process on the running machine. The kernel tells them first: no more than these is read of what may be
/// a hundred thousand connections.
pub fn listening_sockets(pid: u32) -> Reading<Vec<String>> {
    let mut lines = Vec::new();
    for table in ["tcp", "tcp6"] {
        let path = format!("/proc/{pid}/net/{table}");
        match listening_in(&path) {
            Ok(found) => lines.extend(found),
            // A kernel without IPv6.
            Err(error) if table == "tcp6" && error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Failed(format!("{path}: {error}")),
        }
    }
    Present(lines)
}

fn listening_in(path: &str) -> io::Result<Vec<String>> {
    let lines = BufReader::new(File::open(path)?).lines().skip(1);
    let listens = |line: &str| line.split_ascii_whitespace().nth(3) == Some(TCP_LISTEN);
    lines.take_while(|line| line.as_ref().map_or(true, |line| listens(line))).collect()
}

/// `TCP_LISTEN` of `net/tcp_states.h`.
pub const TCP_LISTEN: &str = "0A";

fn sent_segments(snmp: &str) -> Option<u64> {
    field(snmp, "Tcp:", "OutSegs")
}

fn field(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut fields = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
    fields.find(|(found, _)| *found == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
        Tcp: RtoMin MaxConn OutSegs RetransSegs\nTcp: 200 -1 105545 17\n";
    const NETSTAT: &str =
        "TcpExt: ListenOverflows TCPTimeouts\nTcpExt: 3 5\nIpExt: InOctets\nIpExt: 9\n";

    #[test]
    fn what_is_sent_is_asked_again_and_again() {
        let sent = Sent::from(std::process::id()).unwrap();
        let first = sent.segments().unwrap();
        assert!(sent.segments().unwrap() >= first);
        assert!(Sent::from(u32::MAX).is_none());
    }

    #[test]
    fn sockets_that_listen_are_told_first() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _connected = std::net::TcpStream::connect(address).unwrap();
        let port = format!(":{:04X} ", address.port());
        let lines = listening_sockets(std::process::id()).into_value().unwrap();
        assert_eq!(lines.iter().filter(|line| line.contains(&port)).count(), 1, "{lines:#?}");
        assert!(!listening_sockets(u32::MAX).is_present());
    }

    #[test]
    fn names_tell_which_number() {
        let counts = parse(SNMP, NETSTAT).unwrap();
        assert_eq!((counts.sent_segments, counts.retransmitted_segments), (105_545, 17));
        assert_eq!((counts.timeouts, counts.listen_overflows), (5, 3));
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        assert_eq!(parse("", NETSTAT), None);
        assert_eq!(parse("Tcp: OutSegs RetransSegs\n", NETSTAT), None);
        assert_eq!(parse(SNMP, "TcpExt: ListenOverflows TCPTimeouts\nTcpExt: 3\n"), None);
        assert_eq!(parse(SNMP, "TcpExt: ListenOverflows TCPTimeouts\nTcpExt: 3 x\n"), None);
    }
}
