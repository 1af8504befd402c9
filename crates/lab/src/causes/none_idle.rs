//! No problem: a healthy server that nobody asks anything.

use super::{Cause, Injected, Need, Plan};
use untax_scenes::Engine;

pub(super) const CAUSE: Cause = Cause {
    id: "none-idle",
    summary: "nothing: an idle server, where nothing is to be found",
    mild: None,
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root],
    takes: None,
    plan: |engine, _| Plan { work: None, ..Plan::calm(engine) },
    inject: |_| Ok(Injected::nothing()),
};
