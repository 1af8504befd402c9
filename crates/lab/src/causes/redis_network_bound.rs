//! Requests one by one, so that most of the time goes into the network stack.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::PIPELINED;
use untax_scenes::{Engine, Kind, Work};

pub(super) const CAUSE: Cause = Cause {
    id: "redis-network-bound",
    summary: "50 clients that send requests one by one rather than 16 at a time, over TCP",
    mild: Some("4 at a time rather than 16"),
    engines: &[Engine::Redis],
    left_out: &[
        (
            Engine::Postgres,
            "the lab does not do it to PostgreSQL: the rule is for the one thread that reads all sockets of a Redis; here each client has a process",
        ),
        (
            Engine::Mysql,
            "the lab does not do it to MariaDB: the rule is for the one thread that reads all sockets of a Redis; here each client has a thread",
        ),
    ],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, dose| Environment {
        work: Some(Work { kind: Kind::Pipelined(PIPELINED), clients: 50 }),
        cause_work: Some(Work { kind: Kind::Pipelined(dose.of(1, 4)), clients: 50 }),
        network: true,
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::none()),
};
