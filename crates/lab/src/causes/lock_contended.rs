//! Clients that all change the same row.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

/// Few enough to leave the CPUs idle: what many waits cost of CPU time would end with them too, and
/// no trace can tell it.
const CLIENTS: u32 = 4;

pub(super) const CAUSE: Cause = Cause {
    id: "lock-contended",
    summary: "four clients that change one row, rather than one each, and think before they commit",
    mild: None,
    engines: &[Engine::Postgres, Engine::Mysql],
    left_out: &[(
        Engine::Redis,
        "Redis does not suffer from it: one thread runs all commands, and none waits for another's lock",
    )],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, _| Environment {
        work: Some(Work { kind: Kind::WithThinkTime, clients: CLIENTS }),
        cause_work: Some(Work { kind: Kind::HotRow, clients: CLIENTS }),
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::none()),
};
