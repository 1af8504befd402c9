//! No problem: a healthy server at full load, of which nothing is to be said.

use super::{Cause, Injected, Need, Plan};
use crate::work::Engine;

pub(super) const CAUSE: Cause = Cause {
    id: "none",
    summary: "nothing: a healthy server at full load, where nothing is to be found",
    mild: None,
    engines: &Engine::ALL,
    needs: &[Need::Root],
    takes: None,
    plan: |engine, _| Plan::calm(engine),
    inject: |_| Ok(Injected::nothing()),
};
