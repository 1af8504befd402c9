//! A container runtime that puts a kernel of its own in between.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Runtime;
use untax_scenes::{Engine, Kind, Work};

/// Only Redis is filled and looked after over TCP here: a Unix socket that is made in a sandbox cannot
/// be reached from outside.
pub(super) const CAUSE: Cause = Cause {
    id: "sandboxed-runtime",
    summary: "a server in a sandbox of gVisor rather than a container of runc",
    mild: Some("the same with clients whose requests take long: each sorts a list"),
    engines: &[Engine::Redis],
    left_out: &[
        (
            Engine::Postgres,
            "the lab does not do it to PostgreSQL: it looks after it over a Unix socket, and one made in a sandbox cannot be reached from outside",
        ),
        (
            Engine::Mysql,
            "the lab does not do it to MariaDB: it looks after it over a Unix socket, and one made in a sandbox cannot be reached from outside",
        ),
    ],
    needs: &[Need::Root, Need::Tool("runc", "runc"), Need::Tool("runsc", "runsc")],
    takes: None,
    environment: |engine, dose| Environment {
        work: Some(Work { kind: dose.of(Kind::Reads, Kind::Sorts), clients: 8 }),
        runtime: Runtime::Runc,
        cause_runtime: Some(Runtime::Gvisor),
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::none()),
};
