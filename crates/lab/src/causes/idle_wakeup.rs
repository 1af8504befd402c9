//! CPUs that sleep between two requests of the only client.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

pub(super) const CAUSE: Cause = Cause {
    id: "idle-wakeup",
    summary: "CPUs that halt as soon as they are idle, rather than look for work, under one client",
    mild: Some("the same with two clients"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::Tool("chrt", "util-linux")],
    takes: None,
    environment: |engine, dose| Environment {
        work: Some(Work { kind: Kind::Reads, clients: dose.of(1, 2) }),
        idle_cpus: true,
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::none()),
};
