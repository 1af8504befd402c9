//! No problem: a healthy server at full load, of which nothing is to be said.

use super::{Cause, Injected, Need, Plan};
use untax_scenes::PIPELINED;
use untax_scenes::{Engine, Kind, Work};

pub(super) const CAUSE: Cause = Cause {
    id: "none",
    summary: "nothing: a healthy server at full load, where nothing is to be found",
    mild: None,
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root],
    takes: None,
    plan: |engine, _| {
        // Asked for one key at a time, Redis is at the border of redis-network-bound: how much of its
        // time the network stack takes differs between processors.
        let kind = if engine == Engine::Redis { Kind::Pipelined(PIPELINED) } else { Kind::Reads };
        Plan { work: Some(Work { kind, clients: 8 }), ..Plan::calm(engine) }
    },
    inject: |_| Ok(Injected::nothing()),
};
