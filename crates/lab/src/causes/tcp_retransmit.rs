//! A network that drops packets.

use super::{Cause, Injected, Need, Plan};
use crate::work::{Engine, Kind, Work};

/// A queue of a few packets in front of a link of 100 Mbit/s: bursts overflow it.
const BITS_PER_S: u64 = 100_000_000;
const QUEUED_BYTES: u64 = 24 << 10;

pub(super) const CAUSE: Cause = Cause {
    id: "tcp-retransmit",
    summary: "a link of 100 Mbit/s with a queue of 24 KiB, which drops what comes in bursts",
    engines: &[Engine::Postgres, Engine::Redis],
    needs: &[Need::Root, Need::Tool("tc", "iproute2")],
    plan: |engine| Plan {
        work: Some(Work { kind: Kind::Fetches, clients: 8 }),
        network: true,
        ..Plan::calm(engine)
    },
    inject: |scene| Ok(Injected::by(scene.network()?.narrow(BITS_PER_S, QUEUED_BYTES)?)),
};
