//! Clients over TCP for the tests of rules.

use untax_core::network::{ClientConnection, DatabaseNetwork, Segments};
use untax_core::{Reading, Window};

/// A client on another host that asked so many requests, of a tenth of a segment each. Half of its smoothed
/// round trip is its own.
pub fn connection(cookie: u64, rtt_us: u32, requests: u32) -> ClientConnection {
    ClientConnection {
        cookie,
        is_local: false,
        rtt_us: Some(rtt_us),
        min_rtt_us: Some(rtt_us / 2),
        retransmits: 0,
        segment_bytes: 1000,
        received: Some(Segments { count: requests, bytes: u64::from(requests) * 100 }),
        sent: Some(Segments { count: 3 * requests, bytes: u64::from(requests) * 2500 }),
    }
}

/// Connects these at both ends of the test window, in which the database did so many requests, counted at once.
pub fn connect(
    window: &mut Window,
    start: &[ClientConnection],
    end: &[ClientConnection],
    requests: u64,
) {
    let ends = [(&mut window.start, start, 0), (&mut window.end, end, requests)];
    for (snapshot, clients, count) in ends {
        let database = &mut snapshot.databases[0];
        let told = [("transactions".to_owned(), 77 + count)];
        database.counters.told = Reading::Present(told.into());
        database.traits.counts_late_ms = 0;
        if let Reading::Present(network) = &mut database.network {
            network.clients = Reading::Present(clients.to_vec());
            continue;
        }
        database.network = Reading::Present(DatabaseNetwork {
            own_namespace: false,
            way: Reading::absent("not read"),
            conntrack: Reading::absent("not read"),
            clients: Reading::Present(clients.to_vec()),
        });
    }
}
