//! A CPU limit below the need.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Engine;

/// Much less than any engine takes of one CPU under full load.
const CPUS: f64 = 0.3;

/// A part less than Redis takes, and than one takes whose clients think.
const MILD_CPUS: f64 = 0.6;
const THOUGHTFUL_CPUS: f64 = 0.2;

pub(super) const CAUSE: Cause = Cause {
    id: "cpu-throttled",
    summary: "a CPU limit of 0.3 CPUs on its control group, with a load that needs more",
    mild: Some("0.2 CPUs under clients that think, or 0.6 of Redis"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root],
    takes: None,
    environment: |engine, dose| Environment::healthy(engine).with_think_time(engine, dose),
    inject: |testbed| {
        let mild = if testbed.engine() == Engine::Redis { MILD_CPUS } else { THOUGHTFUL_CPUS };
        Ok(Guards::of(testbed.group().limit_cpus(testbed.dose().of(CPUS, mild))?))
    },
};
