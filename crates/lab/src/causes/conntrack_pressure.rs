//! A table of connections that is full.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

/// Eight clients that come and go fill it within a second, and then wait until it is swept.
const MOST_CONNECTIONS: u32 = 200;

pub(super) const CAUSE: Cause = Cause {
    id: "conntrack-pressure",
    summary: "a firewall rule and a table of 200 connections, under clients that come and go",
    mild: Some("the same with 200 requests on each connection, 8 of MariaDB, or 16 of Redis"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::Tool("ip", "iproute2"), Need::Tool("nft", "nftables")],
    takes: Some("its clients' time, before it knows of them"),
    environment: |engine, dose| Environment {
        work: Some(Work { kind: dose.of(Kind::Reconnect, Kind::Sessions), clients: 8 }),
        network: true,
        ..Environment::healthy(engine)
    },
    inject: |testbed| Ok(Guards::of(testbed.network()?.track(MOST_CONNECTIONS)?)),
};
