//! A connection for every request.

use super::{Cause, Injected, Need, Plan};
use crate::work::{Engine, Kind, Work};

pub(super) const CAUSE: Cause = Cause {
    id: "short-connections",
    summary: "eight clients that connect anew for every request",
    engines: &Engine::ALL,
    needs: &[Need::Root],
    takes: None,
    plan: |engine| Plan {
        cause_work: Some(Work { kind: Kind::Reconnect, clients: 8 }),
        ..Plan::calm(engine)
    },
    inject: |_| Ok(Injected::nothing()),
};
