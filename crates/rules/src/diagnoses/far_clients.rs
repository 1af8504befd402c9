//! `far-clients`: requests and answers are on their way for much of the clients' time.

use crate::evidence;
use crate::model::client_network::Clients;
use crate::model::without_tax::{self, Words};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Interval, Reading, Severity, Window, reason};

pub const RULE: Rule = Rule {
    id: "far-clients",
    summary: "clients wait for the network between two requests",
    what: "A client that waits for each answer spends a network round trip on each message that it \
           sends. To the server, such a client looks like a client that thinks: a faster server \
           does not shorten this time, and no tax includes it. The client is in another zone, \
           behind a proxy, or asks in many small steps.",
    method: "The price in latency is modelled: the round-trip time that the kernel keeps for each \
             connection, multiplied by the requests. The rule has no tax.",
    measured: "The rule reads tcp_info of each client connection, by INET_DIAG in the database's \
               network namespace, at both ends of the window. Round trips are messages that went \
               both ways. There are no more of them than segments with data, and no fewer than \
               segments that cannot have been full. Each round trip takes at least the shortest \
               round-trip time of the last minutes (min_rtt), and at most the smoothed one (rtt). \
               A client that thinks acknowledges a segment with its next request or after up to 40 \
               ms. So the smoothed time may include the client's own time. The price is modelled, \
               and is no part of the database's active time, so there is no tax. The finding is \
               info. The finding needs round trips that take a tenth of the clients' time or more, \
               and a client outside of the database's own network namespace.",
    fix: "Move the clients nearer to the database. Send fewer messages: batches, pipelines, \
          procedures, multi-row statements.",
    sources: &[
        "man7.org: sock_diag(7), tcp(7)",
        "kernel.org: networking/ip-sysctl, tcp_min_rtt_wlen",
    ],
    privilege: "root for other users' processes",
    minimum_kernel: "4.9 (tcp_info with min_rtt and segments with data)",
    cost: "a list of the database's connections, some 400 bytes each, at both ends of the window",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// The part of the clients' time on the way that is worth a word: what all else takes of it is nine times
/// as long.
const WORTH: f64 = 0.1;

/// The kinds of reason that say that there is no client to look at.
const NO_CLIENT: [&str; 2] = [reason::NOT_HERE.id, reason::NOT_ASKED.id];

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    window.databases().flat_map(|pair| evaluate_one(&pair)).collect()
}

fn evaluate_one(pair: &Pair) -> Vec<Diagnosis> {
    let id = Some(pair.end.id.as_str());
    let share = Clients::of(pair).and_then(|clients| {
        clients.share_on_the_way().map(|share| (share.low >= WORTH).then_some((share, clients)))
    });
    match share {
        Reading::Present(Some((share, clients))) if !clients.are_local() => {
            finding_and_gap(id, pair, share, &clients)
        }
        // All is near, or no client is connected over TCP.
        Reading::Present(_) => Vec::new(),
        // Nor to a process that listens on no socket: where it is another one that does, who knows.
        Reading::Absent(why) if NO_CLIENT.contains(&reason::of(&why).id) => Vec::new(),
        gap => without_tax::unmeasured(RULE.id, id, gap.why().unwrap_or_default()),
    }
}

fn finding_and_gap(
    id: Option<&str>,
    pair: &Pair,
    share: Interval,
    clients: &Clients,
) -> Vec<Diagnosis> {
    let mut evidence = vec![Evidence::new(&evidence::ON_THE_WAY, share.mid, "tcp_info")];
    evidence.extend(clients.latency_evidence(pair));
    let words = Words {
        severity: Severity::Info,
        summary: format!(
            "network round trips take {:.0} % of the clients' time (modelled)",
            share.mid * 100.0
        ),
        fix: "move the clients nearer, or send fewer messages: batches, pipelines, procedures"
            .to_owned(),
        evidence,
        gain: None,
        remedy: None,
        why: "it is a price in latency: the database is idle meanwhile",
    };
    without_tax::finding_and_gap(RULE.id, id, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clients::{connect, connection};
    use crate::test_window::{self, found, gaps};
    use untax_core::evidence::Value;
    use untax_core::network::ClientConnection;

    /// A client that asked 900 requests in ten seconds, of this round-trip time.
    fn window(rtt_us: u32, is_local: bool) -> Window {
        let mut window = test_window::postgres();
        let asked = |requests| ClientConnection { is_local, ..connection(1, rtt_us, requests) };
        connect(&mut window, &[asked(9)], &[asked(909)], 900);
        window
    }

    #[test]
    fn far_clients_have_a_price_in_latency_and_no_tax() {
        // 810 to 900 round trips of 2 to 4 ms: at least 1.6 s of ten.
        let finding = found(evaluate(&window(4000, false))).remove(0);
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.tax.is_none() && finding.gain.is_none());
        let number = |id: &str| match finding.evidence.iter().find(|e| e.id == id)?.value {
            Value::Number(number) => Some((number * 1e6).round()),
            _ => None,
        };
        assert_eq!(number("client-rtt"), Some(4000.0));
        assert_eq!(number("round-trips"), Some(950_000.0));
        assert_eq!(number("network-latency"), Some(1900.0));
        assert_eq!(number("network-latency-most"), Some(4000.0));
        assert!(gaps(evaluate(&window(4000, false)))[0].contains("price in latency"));
    }

    #[test]
    fn clients_that_are_near_are_nothing() {
        assert!(evaluate(&window(4000, true)).is_empty());
        // The lower bound counts: 0.9 s.
        assert!(evaluate(&window(2200, false)).is_empty());
    }

    #[test]
    fn without_a_client_over_tcp_nothing_is_said_and_an_older_capture_says_why() {
        let mut window = window(4000, false);
        connect(&mut window, &[], &[], 900);
        assert!(evaluate(&window).is_empty());
        for snapshot in [&mut window.start, &mut window.end] {
            let Reading::Present(network) = &mut snapshot.databases[0].network else { continue };
            network.clients = Reading::not_captured();
        }
        assert_eq!(gaps(evaluate(&window)), ["not captured"]);
    }
}
