//! A neighbour that writes without flushing, on the filesystem of the database.

use super::{Cause, Injected, Need, Plan};
use crate::neighbour::Neighbour;
use crate::work::Engine;

const MEBIBYTES: u64 = 256;
const WRITERS: u32 = 2;

/// What the disk takes a second: as a cloud volume, more than the database needs and less than
/// memory holds. Without it the flood would be over before anybody waits.
const BYTES_PER_S: u64 = 20 << 20;

pub(super) const CAUSE: Cause = Cause {
    id: "dirty-burst",
    summary: "two neighbours that dirty 256 MiB each, again and again, on the same filesystem",
    engines: &Engine::ALL,
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("setpriv", "util-linux")],
    plan: |engine| Plan { disk_bytes_per_s: Some(BYTES_PER_S), ..Plan::durable(engine) },
    inject: |scene| {
        let disk = scene.disk()?;
        let flood = Neighbour::flooding(disk.path(), MEBIBYTES, WRITERS, None)?;
        Ok(Injected::by(flood).and(disk.clearing("flood.*")?))
    },
};
