//! A neighbour that reads much more than its memory limit holds.

use super::{Cause, Injected, Need, Plan};
use crate::neighbour::Neighbour;
use crate::work::Engine;

/// What each reads, how many there are, and what all of them may keep.
const MEBIBYTES: u64 = 512;
const READERS: u32 = 4;
const LIMIT_MEBIBYTES: u64 = 64;

pub(super) const CAUSE: Cause = Cause {
    id: "neighbour-reclaim",
    summary: "four neighbours that read 512 MiB each through a memory limit of 64 MiB",
    engines: &Engine::ALL,
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("setpriv", "util-linux")],
    plan: |engine| Plan { disk_mebibytes: Some(4096), ..Plan::calm(engine) },
    inject: |scene| {
        let path = scene.disk()?.path();
        let (neighbour, limit) = Neighbour::churning(path, MEBIBYTES, READERS, LIMIT_MEBIBYTES)?;
        Ok(Injected::by(limit).and(neighbour))
    },
};
