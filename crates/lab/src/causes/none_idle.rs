//! No problem: a healthy server that nobody asks anything.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Engine;

pub(super) const CAUSE: Cause = Cause {
    id: "none-idle",
    summary: "nothing: an idle server, where nothing is to be found",
    mild: None,
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, _| Environment { work: None, ..Environment::healthy(engine) },
    inject: |_| Ok(Guards::none()),
};
