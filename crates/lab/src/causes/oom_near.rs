//! Memory that grows towards its limit.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::{Engine, Kind, Work};

/// What is left under the limit: a minute of growth, or ten where the machine is slow, so that it is seen and
/// not met.
const LEFT_BYTES: u64 = 512 << 20;

pub(super) const CAUSE: Cause = Cause {
    id: "oom-near",
    summary: "a Redis that keeps growing, 512 MiB below its memory limit",
    mild: None,
    engines: &[Engine::Redis],
    left_out: &[
        (
            Engine::Postgres,
            "the lab does not do it to PostgreSQL: its shared memory has a fixed size, and no load here keeps the rest growing",
        ),
        (
            Engine::Mysql,
            "the lab does not do it to MariaDB: its buffer pool has a fixed size, and no load here keeps the rest growing",
        ),
    ],
    needs: &[Need::Root],
    takes: Some("the memory that is left"),
    environment: |engine, _| Environment {
        work: Some(Work { kind: Kind::Grows, clients: 1 }),
        settling_s: 1,
        ..Environment::healthy(engine)
    },
    inject: |testbed| {
        let usage = testbed.group().charged_bytes()?;
        Ok(Guards::of(testbed.group().limit_memory(usage + LEFT_BYTES)?))
    },
};
