//! A neighbour that writes to the database's disk.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
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
    environment: |engine, _| Environment::durable(engine),
    inject: |testbed| Ok(Guards::of(Neighbour::of_disk(testbed.disk()?.path(), WRITERS)?)),
};
