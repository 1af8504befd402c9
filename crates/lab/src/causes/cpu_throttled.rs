//! A CPU limit below the need.

use super::{Cause, Injected, Need, Plan};
use crate::work::Engine;

/// Much less than any engine takes of one CPU under full load.
const CPUS: f64 = 0.3;

/// A part less than it takes.
const MILD_CPUS: f64 = 0.6;

pub(super) const CAUSE: Cause = Cause {
    id: "cpu-throttled",
    summary: "a CPU limit of 0.3 CPUs on its control group, with a load that needs more",
    mild: Some("a limit of 0.6 CPUs"),
    engines: &Engine::ALL,
    needs: &[Need::Root],
    takes: None,
    plan: |engine, _| Plan::calm(engine),
    inject: |scene| Ok(Injected::by(scene.group().limit_cpus(scene.dose().of(CPUS, MILD_CPUS))?)),
};
