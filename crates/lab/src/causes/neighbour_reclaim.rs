//! A neighbour that reads files below the memory limit that it shares with the database.

use super::reclaim_stall;
use super::{Cause, Injected, Need, Plan};
use crate::neighbour::Neighbour;
use crate::work::Engine;

/// What each reads again and again, and how many there are.
const MEBIBYTES: u64 = 256;
const READERS: u32 = 2;

/// What the limit leaves to all of them beside what cannot be freed.
const LEFT_BYTES: u64 = 160 << 20;

/// MariaDB waits for its own log and locks here rather than for memory: some 2 % of its time is in
/// reclaim, which is not worth a finding.
pub(super) const CAUSE: Cause = Cause {
    id: "neighbour-reclaim",
    summary: "two neighbours that read 256 MiB each again and again, below a memory limit that they share with it",
    mild: None,
    engines: &[Engine::Postgres],
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("setpriv", "util-linux")],
    takes: None,
    plan: |engine, _| Plan { pod: true, ..reclaim_stall::plan(engine) },
    inject: |scene| {
        let (_, kept) = scene.pod()?.memory_bytes()?;
        let limit = scene.pod()?.limit_memory(kept + LEFT_BYTES)?;
        let disk = scene.disk()?;
        let readers = Neighbour::reading(disk.path(), MEBIBYTES, READERS, scene.pod()?)?;
        Ok(Injected::by(readers).and(limit).and(disk.clearing("read.*")?))
    },
};
