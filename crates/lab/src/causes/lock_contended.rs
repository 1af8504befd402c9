//! Clients that all change the same row.

use super::{Cause, Injected, Need, Plan};
use crate::work::{Engine, Kind, Work};

const CLIENTS: u32 = 32;

pub(super) const CAUSE: Cause = Cause {
    id: "lock-contended",
    summary: "32 clients that change one row, rather than a random one each",
    engines: &[Engine::Postgres, Engine::Mysql],
    needs: &[Need::Root],
    plan: |engine| Plan {
        work: Some(Work { kind: Kind::Writes, clients: CLIENTS }),
        cause_work: Some(Work { kind: Kind::HotRow, clients: CLIENTS }),
        ..Plan::calm(engine)
    },
    inject: |_| Ok(Injected::nothing()),
};
