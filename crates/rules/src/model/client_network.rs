//! What the network takes of the time between a database's requests.
//!
//! To the server a round trip looks like a client that thinks. The kernel measures the round trips of each
//! connection: the shortest one is the network's alone; the smoothed one may hold the client's time too,
//! because a client answers a segment by its next request, or after up to 40 ms. What is the network's lies
//! between the two.

use crate::evidence;
use std::collections::BTreeMap;
use untax_core::activity::{Doing, Part};
use untax_core::database::Model;
use untax_core::network::{ClientConnection, ClientNetwork, Segments};
use untax_core::reading::Reading::{self, Absent, Present};
use untax_core::window::Pair;
use untax_core::{Database, Evidence, Interval, stats};

/// The connections of clients over a window.
pub struct Clients {
    /// Those that were there when it closed.
    connections: Vec<ClientConnection>,
    /// What each of them that asked something did in the window.
    asking: Vec<Asking>,
    /// The part (0..1) that was there at both ends, of those that were there at any.
    kept: f64,
    seconds: f64,
}

/// A connection over which requests came.
struct Asking {
    connection: ClientConnection,
    /// How often a message went to the server and one came back.
    round_trips: Interval,
}

impl Asking {
    /// None where the kernel does not count segments, or nothing went both ways. A client that waits for each
    /// answer sends as many messages as it gets. Each is in a segment of its own or in several, of which all
    /// but the last are full: the messages of either direction are no more than its segments, and no fewer
    /// than those that cannot have been full.
    fn between(start: Option<&ClientConnection>, end: &ClientConnection) -> Option<Self> {
        let messages = |of: fn(&ClientConnection) -> Option<Segments>| {
            // One that is new began at nothing.
            let then = start.map_or(Some(Segments { count: 0, bytes: 0 }), of)?;
            let (count, bytes) = (
                of(end)?.count.wrapping_sub(then.count),
                of(end)?.bytes.saturating_sub(then.bytes),
            );
            let full = bytes as f64 / f64::from(end.segment_bytes.max(1));
            Some([(f64::from(count) - full).max(0.0), f64::from(count)])
        };
        let [received, sent] = [messages(|c| c.received)?, messages(|c| c.sent)?];
        let most = received[1].min(sent[1]);
        let least = received[0].max(sent[0]).min(most);
        let round_trips = Interval::new(least, f64::midpoint(least, most), most);
        (most > 0.0).then_some(Self { connection: *end, round_trips })
    }

    /// For how long (s) its messages were on their way in a window of this length; none where no round trip
    /// was timed.
    fn on_the_way_s(&self, seconds: f64) -> Option<Interval> {
        let Self { connection, round_trips } = self;
        let smoothed_us = f64::from(connection.rtt_us.or(connection.min_rtt_us)?);
        // The smoothed time follows slowly: it may be below what was the shortest for minutes.
        let shortest_us = connection.min_rtt_us.map(|us| f64::from(us).min(smoothed_us));
        let us = Interval::new(
            shortest_us.unwrap_or(0.0),
            shortest_us.unwrap_or(smoothed_us),
            smoothed_us,
        );
        Some(us.times(*round_trips).map(|us| (us * 1e-6).min(seconds)))
    }
}

/// Connections that come and go are seen at the ends of the window alone. Where so many stay, the round trips
/// of the others are few.
const MOST_STAY: f64 = 0.9;

const NOT_TIMED: &str = "no round trip of a client was timed yet";

const NO_CLIENT: &str = "no client was connected over TCP when the window closed";

impl Clients {
    /// The connections of one database. Absent where there was none, and where the capture has none.
    pub fn of(pair: &Pair) -> Reading<Self> {
        let Some(start) = pair.start else {
            return Absent("the database was started during the window".to_owned());
        };
        connections(pair.end).and_then(|end| {
            if end.is_empty() {
                return Absent(NO_CLIENT.to_owned());
            }
            connections(start).map(|start| Self::between(start, end, pair.seconds))
        })
    }

    fn between(start: &[ClientConnection], end: &[ClientConnection], seconds: f64) -> Self {
        let before: BTreeMap<u64, &ClientConnection> =
            start.iter().map(|connection| (connection.cookie, connection)).collect();
        let asking = end.iter();
        let asking =
            asking.filter_map(|now| Asking::between(before.get(&now.cookie).copied(), now));
        let asking = asking.collect();
        let stayed = end.iter().filter(|now| before.contains_key(&now.cookie)).count();
        let all = start.len() + end.len() - stayed;
        let kept = stayed as f64 / all.max(1) as f64;
        Self { connections: end.to_vec(), asking, kept, seconds }
    }

    /// The smoothed round-trip times, µs, of those that asked something if any did, in ascending order.
    fn rtts_us(&self) -> Vec<f64> {
        let rtts = |connections: &mut dyn Iterator<Item = &ClientConnection>| -> Vec<f64> {
            connections.filter_map(|connection| connection.rtt_us).map(f64::from).collect()
        };
        let asking = rtts(&mut self.asking.iter().map(|asking| &asking.connection));
        if asking.is_empty() { rtts(&mut self.connections.iter()) } else { asking }
    }

    /// A quantile of the smoothed round-trip times, µs.
    pub fn rtt_us(&self, q: f64) -> Reading<f64> {
        match stats::quantile(&self.rtts_us(), q) {
            Some(rtt) => Present(rtt),
            None => Absent(NOT_TIMED.to_owned()),
        }
    }

    /// Whether all that asked something are in the database's own network namespace.
    pub fn are_local(&self) -> bool {
        self.asking.iter().all(|asking| asking.connection.is_local)
    }

    /// How often a message went to the database and one came back.
    fn round_trips(&self) -> Reading<Interval> {
        let counts = |connection: &ClientConnection| connection.received.is_some();
        if !self.connections.iter().all(counts) {
            return Absent("this kernel does not count segments with data (4.6)".to_owned());
        }
        if self.kept < MOST_STAY {
            let why = "clients connected or left during the window: the round trips of those that are \
                       gone are not known";
            return Absent(why.to_owned());
        }
        let each = self.asking.iter().map(|asking| asking.round_trips);
        Present(each.fold(Interval::exact(0.0), Interval::plus))
    }

    /// For how long messages were on their way, summed over the connections: none was for longer than the
    /// window.
    fn on_the_way_s(&self) -> Reading<Interval> {
        let each = self.asking.iter().map(|asking| asking.on_the_way_s(self.seconds));
        match each.collect::<Option<Vec<Interval>>>() {
            Some(each) => Present(each.into_iter().fold(Interval::exact(0.0), Interval::plus)),
            None => Absent(NOT_TIMED.to_owned()),
        }
    }

    /// The part (0..1) of the time of the clients that asked something in which their requests and answers
    /// were on the way.
    pub fn share_on_the_way(&self) -> Reading<Interval> {
        let all_s = self.asking.len() as f64 * self.seconds;
        self.round_trips().and_then(|trips| {
            if trips.high > 0.0 && all_s > 0.0 {
                self.on_the_way_s().map(|on_the_way_s| on_the_way_s.scale(1.0 / all_s))
            } else {
                Absent("no client over TCP asked anything in the window".to_owned())
            }
        })
    }

    /// How often a message went to the database and one came back, for a request; and for how long (µs) they
    /// were on the way.
    pub fn per_request(&self, pair: &Pair) -> Reading<(Interval, Interval)> {
        requests(pair).and_then(|requests| {
            self.round_trips().and_then(|trips| {
                let each = one_over(requests, pair);
                self.on_the_way_s().map(|all| (trips.times(each), all.times(each).scale(1e6)))
            })
        })
    }

    /// What a request waits for the network, as evidence: its price in latency.
    pub fn latency_evidence(&self, pair: &Pair) -> Vec<Evidence> {
        let source = "tcp_info";
        let rtt = self.rtt_us(0.5).into_value();
        let rtt = rtt.map(|us| Evidence::new(&evidence::CLIENT_RTT, us * 1e-6, source));
        let price = self.per_request(pair).into_value().map(|(trips, us)| {
            let seconds = us.scale(1e-6);
            [
                Evidence::new(&evidence::ROUND_TRIPS, trips.mid, source),
                Evidence::new(&evidence::NETWORK_LATENCY, seconds.mid, source),
                Evidence::new(&evidence::NETWORK_LATENCY_MOST, seconds.high, source),
            ]
        });
        rtt.into_iter().chain(price.into_iter().flatten()).collect()
    }

    fn retransmits(&self, pair: &Pair) -> Reading<u64> {
        let start = pair.start.map_or(Absent(String::new()), connections);
        start.map(|start| {
            let before: BTreeMap<u64, u32> =
                start.iter().map(|then| (then.cookie, then.retransmits)).collect();
            let since = |now: &ClientConnection| {
                let then = before.get(&now.cookie).copied().unwrap_or(0);
                u64::from(now.retransmits.wrapping_sub(then))
            };
            self.connections.iter().map(since).sum()
        })
    }
}

fn connections(database: &Database) -> Reading<&Vec<ClientConnection>> {
    database.network.as_ref().and_then(|network| network.clients.as_ref())
}

/// How many requests were done in the window, by the server's own count.
fn requests(pair: &Pair) -> Reading<f64> {
    let Some(count) = &pair.end.traits.requests_counter else {
        return Absent(format!("{} does not count its requests", pair.end.product));
    };
    pair.told_growth(count).and_then(|requests| {
        if requests > 0.0 {
            Present(requests)
        } else {
            Absent("no request was done in the window".to_owned())
        }
    })
}

/// One over the requests of a window. Of what came late at its start the window has too many, of what comes
/// late after its end too few: at a steady rate, both are at most as much as came in that time.
fn one_over(requests: f64, pair: &Pair) -> Interval {
    let late = f64::from(pair.end.traits.counts_late_ms) / 1e3 / pair.seconds;
    Interval::new((1.0 - late).max(0.0), 1.0, 1.0 + late).scale(1.0 / requests)
}

/// For how long the threads that serve clients waited for these, for each request, µs.
fn idle_per_request_us(pair: &Pair) -> Reading<f64> {
    let model = pair.end.model;
    if !matches!(model, Model::Process | Model::Thread) {
        return Absent("one thread waits for all its clients at once".to_owned());
    }
    requests(pair).and_then(|requests| {
        pair.activity.clone().map(|activity| {
            let idle_s = activity.sum(|spent| {
                // Nobody asked anything of one that is dormant.
                spent.serves(model)
                    && spent.part(model) == Part::Idle
                    && spent.doing != Doing::Dormant
            });
            1e6 * idle_s.0 / requests
        })
    })
}

/// What lies between a database and its clients.
pub fn client_network(pair: &Pair) -> ClientNetwork {
    let clients = Clients::of(pair);
    let clients = clients.as_ref();
    let per_request = clients.clone().and_then(|clients| clients.per_request(pair));
    let idle_us = clients.clone().and_then(|_| idle_per_request_us(pair));
    // The network has no more of it than there is.
    let network_us = per_request.clone().map(|(_, us)| {
        let most = idle_us.value().copied().unwrap_or(f64::INFINITY);
        us.clamp(0.0, most)
    });
    let client_us = idle_us.clone().and_then(|idle| {
        network_us.clone().map(|network| {
            Interval::new(idle - network.high, idle - network.mid, idle - network.low)
        })
    });
    ClientNetwork {
        client_connections: clients.clone().map(|clients| clients.connections.len() as u32),
        client_rtt_us_p50: clients.clone().and_then(|clients| clients.rtt_us(0.5)),
        client_rtt_us_p99: clients.clone().and_then(|clients| clients.rtt_us(0.99)),
        client_retransmits: clients.and_then(|clients| clients.retransmits(pair)),
        round_trips_per_request: per_request.map(|(trips, _)| trips),
        network_per_request_us: network_us,
        idle_per_request_us: idle_us,
        client_per_request_us: client_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clients::{connect, connection};
    use crate::test_window;
    use untax_core::Window;

    fn network(window: &Window) -> ClientNetwork {
        client_network(&window.databases().next().unwrap())
    }

    /// Two clients for ten seconds: each had so many requests, of which `trips` segments went each way.
    fn window(requests: u64, rtt_us: u32, trips: u32) -> Window {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 2.0), (Doing::Receive, 18.0)]);
        let start = [connection(1, rtt_us, 100), connection(2, rtt_us, 7)];
        let end = [connection(1, rtt_us, 100 + trips), connection(2, rtt_us, 7 + trips)];
        connect(&mut window, &start, &end, 2 * requests);
        window
    }

    fn about(reading: &Reading<Interval>, expected: [f64; 3]) {
        let Interval { low, mid, high } = *reading.value().unwrap_or_else(|| panic!("{reading:?}"));
        let near = [low, mid, high].iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near, "{reading:?} rather than {expected:?}");
    }

    #[test]
    fn idle_time_is_split_between_network_and_client() {
        // 900 requests each, 20 ms for each, of which 10 ms idle: three round trips of 1 to 2 ms.
        let network = network(&window(900, 2000, 2700));
        assert_eq!(network.client_connections, Present(2));
        assert_eq!(network.client_rtt_us_p50, Present(2000.0));
        // Three segments in for a request, of a tenth each.
        about(&network.round_trips_per_request, [2.7, 2.85, 3.0]);
        assert_eq!(network.idle_per_request_us, Present(10_000.0));
        about(&network.network_per_request_us, [2700.0, 2850.0, 6000.0]);
        about(&network.client_per_request_us, [4000.0, 7150.0, 7300.0]);
    }

    #[test]
    fn counts_that_come_late_widen_what_a_request_has() {
        let mut window = window(900, 2000, 2700);
        let late = |window: &mut Window, ms| {
            window.end.databases[0].traits.counts_late_ms = ms;
            network(window)
        };
        // Ten seconds, of which the requests of one may be of another window.
        let second = late(&mut window, 1000);
        about(&second.round_trips_per_request, [0.9 * 2.7, 2.85, 1.1 * 3.0]);
        about(&second.network_per_request_us, [0.9 * 2700.0, 2850.0, 1.1 * 6000.0]);
        about(&late(&mut window, 20_000).round_trips_per_request, [0.0, 2.85, 9.0]);
    }

    #[test]
    fn the_network_has_no_more_than_the_idle_time() {
        let network = network(&window(900, 50_000, 900));
        about(&network.network_per_request_us, [10_000.0; 3]);
        about(&network.client_per_request_us, [0.0; 3]);
    }

    #[test]
    fn requests_in_one_segment_share_a_round_trip() {
        // Sixteen at a time.
        let network = network(&window(16_000, 2000, 1000));
        about(&network.round_trips_per_request, [0.9 / 16.0, 0.95 / 16.0, 1.0 / 16.0]);
        about(&network.network_per_request_us, [56.25, 59.375, 125.0]);
    }

    #[test]
    fn what_is_not_known_is_not_zero() {
        let mut window = window(900, 2000, 900);
        let whys = |window: &Window| {
            let network = network(window);
            let us = network.network_per_request_us.why();
            (network.client_rtt_us_p50.why().or(us.clone()), us)
        };
        assert_eq!(whys(&window), (None, None));
        let both = connection(1, 2000, 900);
        // Clients that come and go take their round trips with them.
        connect(&mut window, &[connection(3, 1, 9), both], &[both, connection(4, 1, 9)], 900);
        assert!(whys(&window).1.is_some_and(|why| why.contains("connected or left")));
        assert!(network(&window).client_rtt_us_p50.is_present());
        // A kernel before 4.6.
        let older = ClientConnection { received: None, sent: None, min_rtt_us: None, ..both };
        connect(&mut window, &[older], &[older], 900);
        assert!(whys(&window).1.is_some_and(|why| why.contains("does not count segments")));
        assert_eq!(network(&window).client_rtt_us_p50, Present(2000.0));
        let untimed = ClientConnection { rtt_us: None, min_rtt_us: None, ..both };
        connect(&mut window, &[connection(1, 1, 1)], &[untimed], 900);
        assert!(whys(&window).0.is_some_and(|why| why.contains("was timed")));
        // Unix sockets alone.
        connect(&mut window, &[], &[], 900);
        assert!(matches!(network(&window).client_rtt_us_p50, Absent(why) if why == NO_CLIENT));
        let denied = || Reading::Denied("/proc/7/fd".to_owned());
        if let Present(network) = &mut window.end.databases[0].network {
            network.clients = denied();
        }
        assert_eq!(network(&window).client_rtt_us_p50, Reading::Denied("/proc/7/fd".to_owned()));
    }

    #[test]
    fn segments_of_a_large_message_are_one_round_trip() {
        let mut window = window(900, 2000, 900);
        let carried = |requests: u32| ClientConnection {
            // Each request takes four segments, each answer seven.
            received: Some(Segments { count: requests * 4, bytes: u64::from(requests) * 3900 }),
            sent: Some(Segments { count: requests * 7, bytes: u64::from(requests) * 6100 }),
            ..connection(1, 2000, 0)
        };
        connect(&mut window, &[carried(0)], &[carried(100)], 100);
        let trips = network(&window).round_trips_per_request.into_value().unwrap();
        assert!((trips.low - 0.9).abs() < 1e-9 && (trips.high - 4.0).abs() < 1e-9, "{trips:?}");
    }

    #[test]
    fn a_loop_waits_for_all_at_once() {
        let mut window = window(900, 2000, 900);
        for snapshot in [&mut window.start, &mut window.end] {
            snapshot.databases[0].model = Model::Loop;
        }
        let network = network(&window);
        about(&network.network_per_request_us, [900.0, 950.0, 2000.0]);
        assert!(!network.idle_per_request_us.is_present());
        assert!(!network.client_per_request_us.is_present());
    }

    #[test]
    fn retransmits_are_those_of_the_window() {
        let mut window = window(900, 2000, 900);
        let lossy =
            |retransmits, asked| ClientConnection { retransmits, ..connection(1, 2000, asked) };
        let new = ClientConnection { cookie: 5, ..lossy(2, 1) };
        connect(&mut window, &[lossy(40, 1)], &[lossy(43, 9), new], 9);
        assert_eq!(network(&window).client_retransmits, Present(5));
    }
}
