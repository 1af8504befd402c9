//! No problem: a healthy server at full load, of which nothing is to be said.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
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
    environment: |engine, _| {
        // Asked for one key at a time, Redis is at the border of redis-network-bound: how much of its
        // time the network stack takes differs between processors.
        let kind = if engine == Engine::Redis { Kind::Pipelined(PIPELINED) } else { Kind::Reads };
        Environment { work: Some(Work { kind, clients: 8 }), ..Environment::healthy(engine) }
    },
    inject: |_| Ok(Guards::none()),
};
