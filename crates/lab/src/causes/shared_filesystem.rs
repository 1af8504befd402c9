//! A neighbour that writes to the database's disk.

use super::{Cause, Injected, Need, Plan};
use untax_scenes::Engine;
use untax_scenes::Neighbour;

/// Files that are written at once, each request waiting for the one before.
const WRITERS: u32 = 8;

pub(super) const CAUSE: Cause = Cause {
    id: "shared-filesystem",
    summary: "a neighbour that writes eight files to the database's disk, past the page cache, under flushed commits",
    mild: None,
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("setpriv", "util-linux")],
    takes: None,
    plan: |engine, _| Plan::durable(engine),
    inject: |scene| Ok(Injected::by(Neighbour::writing(scene.disk()?.path(), WRITERS)?)),
};
