//! `/proc/PID/net/snmp` and `netstat`: what TCP counts in the network namespace of a process.

use std::fs::File;
use std::os::unix::fs::FileExt;
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
