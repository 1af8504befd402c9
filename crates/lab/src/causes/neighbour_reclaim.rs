//! A neighbour that writes files below the memory limit that it shares with the database.

use super::reclaim_stall;
use super::{Cause, Injected, Need, Plan};
use crate::neighbour::Neighbour;
use crate::work::Engine;

/// What each writes again and again, and how many there are.
const MEBIBYTES: u64 = 256;
const WRITERS: u32 = 2;

/// What the limit leaves to all of them beside what cannot be freed.
const LEFT_BYTES: u64 = 160 << 20;

/// MariaDB waits for its own log and locks here rather than for memory: some 2 % of its time is in
/// reclaim, which is not worth a finding.
pub(super) const CAUSE: Cause = Cause {
    id: "neighbour-reclaim",
    summary: "two neighbours that write 256 MiB each below a memory limit that they share with it",
    engines: &[Engine::Postgres],
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("setpriv", "util-linux")],
    takes: None,
    plan: |engine| Plan { pod: true, ..reclaim_stall::plan(engine) },
    inject: |scene| {
        let (_, kept) = scene.pod()?.memory_bytes()?;
        let limit = scene.pod()?.limit_memory(kept + LEFT_BYTES)?;
        let disk = scene.disk()?;
        let flood = Neighbour::flooding(disk.path(), MEBIBYTES, WRITERS, scene.pod()?)?;
        Ok(Injected::by(flood).and(limit).and(disk.clearing("flood.*")?))
    },
};
