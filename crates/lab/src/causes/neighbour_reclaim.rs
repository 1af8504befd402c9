//! Neighbours that fill the memory limit that they share with the database.

use super::reclaim_stall;
use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Neighbour;
use untax_scenes::{Engine, Kind, Work};

/// What each of two takes again and again.
const MEBIBYTES: u64 = 256;
const MILD_MEBIBYTES: u64 = 112;

/// What the limit leaves to all of them beside what cannot be freed: enough for the database alone.
const LEFT_BYTES: u64 = 640 << 20;

/// Under reads: how fast changes go differs by a quarter from one moment to the next with nobody beside,
/// and MariaDB waits for its own log and locks then rather than for memory.
pub(super) const CAUSE: Cause = Cause {
    id: "neighbour-reclaim",
    summary: "two neighbours that take 256 MiB each again and again, below a memory limit that they share with it",
    mild: Some("112 MiB each"),
    engines: &[Engine::Postgres, Engine::Mysql],
    left_out: &[(
        Engine::Redis,
        "the lab does not do it to Redis: its data are no page cache that neighbours could take, and reads need hardly any new memory",
    )],
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("setpriv", "util-linux")],
    takes: None,
    environment: |engine, _| Environment {
        pod_left_bytes: Some(LEFT_BYTES),
        work: Some(Work { kind: Kind::Reads, clients: 2 }),
        ..reclaim_stall::environment(engine)
    },
    inject: |testbed| {
        let mebibytes = testbed.dose().of(MEBIBYTES, MILD_MEBIBYTES);
        Ok(Guards::of(Neighbour::of_memory(mebibytes, 2, testbed.pod()?)?))
    },
};
