//! `/proc/PID/net/snmp` and `netstat`: what TCP counts in the network namespace of a process.

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

/// Parses the first file for the segments that were sent so far.
pub fn sent_segments(snmp: &str) -> Option<u64> {
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
