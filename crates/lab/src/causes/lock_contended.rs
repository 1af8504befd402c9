//! Clients that all change the same row.

use super::{Cause, Injected, Need, Plan};
use crate::work::{Engine, Kind, Work};

/// Few enough to leave the CPUs idle: what many waits cost of CPU time would end with them too, and
/// no trace can tell it.
const CLIENTS: u32 = 4;
const MILD_CLIENTS: u32 = 2;

pub(super) const CAUSE: Cause = Cause {
    id: "lock-contended",
    summary: "four clients that change one row, rather than one each, and think before they commit",
    mild: Some("two clients"),
    engines: &[Engine::Postgres, Engine::Mysql],
    needs: &[Need::Root],
    takes: None,
    plan: |engine, dose| Plan {
        work: Some(Work { kind: Kind::Thoughtful, clients: dose.of(CLIENTS, MILD_CLIENTS) }),
        cause_work: Some(Work { kind: Kind::HotRow, clients: dose.of(CLIENTS, MILD_CLIENTS) }),
        ..Plan::calm(engine)
    },
    inject: |_| Ok(Injected::nothing()),
};
