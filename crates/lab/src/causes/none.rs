//! No problem: a healthy server at full load, of which nothing is to be said.

use super::{Cause, Injected, Need, Plan};
use crate::work::Engine;

pub(super) const CAUSE: Cause = Cause {
    id: "none",
    summary: "nothing: a healthy server at full load, where nothing is to be found",
    engines: &Engine::ALL,
    needs: &[Need::Root],
    takes: None,
    plan: Plan::calm,
    inject: |_| Ok(Injected::nothing()),
};
