//! A network that drops packets.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

/// What the link carries, with the cause and without. A queue of a few packets in front of it
/// overflows when answers come in bursts.
const BITS_PER_S: u64 = 1_000_000_000;
const QUEUED_BYTES: u64 = 24 << 10;
const MILD_BYTES: u64 = 96 << 10;

pub(super) const CAUSE: Cause = Cause {
    id: "tcp-retransmit",
    summary: "a queue of 24 KiB at a link of 1 Gbit/s, which drops what comes in bursts",
    mild: Some("a queue of 96 KiB"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::Tool("tc", "iproute2")],
    takes: None,
    environment: |engine, _| Environment {
        work: Some(Work { kind: Kind::Fetches, clients: 2 }),
        network: true,
        link_bits_per_s: Some(BITS_PER_S),
        ..Environment::healthy(engine)
    },
    inject: |testbed| {
        let queued = testbed.dose().of(QUEUED_BYTES, MILD_BYTES);
        Ok(Guards::of(testbed.network()?.lossy_link(BITS_PER_S, queued)?))
    },
};
