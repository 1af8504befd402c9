//! The network namespace of a database, and the way out of it.

use crate::database_view::DatabaseView;
use crate::listeners::listening_ports;
use untax_core::Reading::{self, Absent, Present};
use untax_core::network::{ClientConnection, DatabaseNetwork, Way};
use untax_host::{Host, process, sock_diag};

/// `RTF_UP` of `linux/route.h`.
const ROUTE_UP: u32 = 1;

pub(crate) fn read(
    view: &DatabaseView,
    clients: Reading<Vec<ClientConnection>>,
) -> Reading<DatabaseNetwork> {
    let (host, pid) = (view.host, view.pid());
    let ours = host.link("/proc/self/ns/net");
    let own = ours
        .and_then(|ours| host.link(&format!("/proc/{pid}/ns/net")).map(|theirs| theirs != ours));
    own.map(|own_namespace| {
        if !own_namespace {
            let shared = || "it is in the host's own network namespace".to_owned();
            return DatabaseNetwork {
                own_namespace,
                way: Absent(shared()),
                conntrack: Absent(shared()),
                clients,
            };
        }
        let conntrack = process::conntrack(host, pid);
        DatabaseNetwork { own_namespace, way: way(host, pid), conntrack, clients }
    })
}

/// The TCP connections of the clients of the server with this main process. To be read before the server
/// is asked: over TCP, untax itself would be one of them.
pub(crate) fn clients(host: &Host, pid: u32) -> Reading<Vec<ClientConnection>> {
    host.observe(&format!("client_connections:{pid}"), || {
        listening_ports(host, pid).and_then(|ports| sock_diag::connections(pid, &ports))
    })
}

fn way(host: &Host, pid: u32) -> Reading<Way> {
    let file = |name: &str| host.text(&format!("/proc/{pid}/net/{name}"));
    let device = file("route").and_then(|text| match default_device(&text) {
        Some(device) => Present(device.to_owned()),
        None => Absent("its network namespace has no IPv4 default route".to_owned()),
    });
    device.and_then(|device| {
        let path = format!("/proc/{pid}/net/dev");
        let counts = file("dev").parse(&path, |text| counts(text, &device));
        let igmp = format!("/proc/{pid}/net/igmp");
        let index = file("igmp").parse(&igmp, |text| index(text, &device));
        counts.map(|(packets, dropped)| Way { device, index, packets, dropped })
    })
}

/// The link of the default route: `Iface Destination Gateway Flags …`, addresses in hexadecimal.
fn default_device(text: &str) -> Option<&str> {
    text.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
        let everywhere = *fields.get(1)? == "00000000" && *fields.get(7)? == "00000000";
        (everywhere && flags & ROUTE_UP != 0).then_some(fields[0])
    })
}

/// Packets and drops of a link: eight counters of what it received, eight of what it sent.
fn counts(text: &str, device: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| {
        let (name, rest) = line.split_once(':')?;
        (name.trim() == device).then_some(rest)
    })?;
    let numbers = line.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let numbers = numbers.collect::<Option<Vec<u64>>>()?;
    let &[_, received, _, lost, _, _, _, _, _, sent, _, dropped, _, _, _, _] = &numbers[..] else {
        return None;
    };
    Some((received.saturating_add(sent), lost.saturating_add(dropped)))
}

/// The number of a link, from the list of those with multicast groups: all that are up.
fn index(text: &str, device: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        (words.next()?.trim_end_matches(':') == device).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::network::Segments;

    const ROUTE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
        eth0\t0000F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n\
        eth1\t00000000\t0100F40A\t0003\t0\t0\t0\t00000000\t0\n";
    const DEV: &str = "Inter-|   Receive                            |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes packets\n    \
        lo:    3193      29    0    0    0     0          0         0     3193 29 0 0 0 0 0 0\n  \
        eth1:  90      5500    0    3    0     0          0         0   264707 2818 0 4 0 0 0 0\n";

    #[test]
    fn the_default_route_leads_out() {
        assert_eq!(default_device(ROUTE), Some("eth1"));
        assert_eq!(counts(DEV, "eth1"), Some((8318, 7)));
        let igmp = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                    1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                    7\teth1      :     1      V3\n";
        assert_eq!(index(igmp, "eth1"), Some(7));
    }

    #[test]
    fn without_an_ipv4_route_nothing_is_said_of_ipv6() {
        let record = untax_host::Record::default().with_file("/proc/7/net/route", "Iface\n");
        let way = way(&Host::from_record(record), 7);
        assert!(matches!(way, Absent(why) if why.contains("IPv4")));
    }

    #[test]
    fn clients_are_in_a_capture_and_an_older_one_says_that_it_has_none() {
        let carried = Segments { count: 3, bytes: 90 };
        let connection = ClientConnection {
            cookie: 8,
            is_local: false,
            rtt_us: Some(5200),
            min_rtt_us: None,
            retransmits: 1,
            segment_bytes: 1448,
            received: Some(carried),
            sent: None,
        };
        let captured = |answer: &Reading<Vec<ClientConnection>>| {
            let record = untax_host::Record::default().with_answer("client_connections:7", answer);
            clients(&Host::from_record(record), 7)
        };
        for answer in [Present(vec![connection]), Reading::Denied("/proc/7/fd".to_owned())] {
            assert_eq!(captured(&answer), answer);
        }
        let older = clients(&Host::from_record(untax_host::Record::default()), 7);
        assert!(older.why().is_some_and(|why| why.contains("not in the capture")), "{older:?}");
    }

    #[test]
    fn garbage_leads_nowhere() {
        for text in ["", "Iface\n", "x\ny\n", "Iface\neth0\t00000000\tx\tz\t0\t0\t0\t00000000\n"] {
            assert_eq!(default_device(text), None, "{text:?}");
        }
        assert_eq!(counts("eth1: 1 2 3\n", "eth1"), None, "cut off");
        assert_eq!(counts(DEV, "eth"), None);
        assert_eq!(index("x eth1 :\n", "eth1"), None);
    }
}
