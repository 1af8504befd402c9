//! Hundreds of clients at once.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

const CLIENTS: u32 = 300;
const MILD_CLIENTS: u32 = 100;

/// Processes alone suffer: each fills the caches of the CPU with data of its own when its turn comes.
/// MariaDB's threads share theirs, and serve 300 clients 0.96 times as fast as eight; a Redis has one
/// thread for all.
pub(super) const CAUSE: Cause = Cause {
    id: "too-many-connections",
    summary: "300 active clients where eight keep every CPU busy",
    mild: Some("100 active clients"),
    engines: &[Engine::Postgres],
    left_out: &[
        (
            Engine::Mysql,
            "the lab does not do it to MariaDB: the rule has a tax for PostgreSQL alone, and MariaDB's threads share their caches",
        ),
        (
            Engine::Redis,
            "Redis does not suffer from it: one thread serves all clients, so they take no turns on the CPUs",
        ),
    ],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, dose| Environment {
        cause_work: Some(Work { kind: Kind::Reads, clients: dose.of(CLIENTS, MILD_CLIENTS) }),
        settling_s: 4,
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::none()),
};
