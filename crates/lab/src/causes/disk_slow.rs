//! A disk that does few operations a second.

use super::{Cause, Injected, Need, Plan};
use crate::disk::Limit;
use crate::work::Engine;

/// What a single spinning disk does.
const OPERATIONS_PER_S: u64 = 60;

pub(super) const CAUSE: Cause = Cause {
    id: "disk-slow",
    summary: "a data disk that does 60 writes a second, under commits that are flushed",
    engines: &Engine::ALL,
    needs: &[Need::Root, Need::LoopDevice],
    takes: None,
    plan: Plan::durable,
    inject: |scene| {
        let disk = scene.disk()?;
        let writes = disk.limit(scene.group(), Limit::WriteOperations, OPERATIONS_PER_S)?;
        let reads = disk.limit(scene.group(), Limit::ReadOperations, OPERATIONS_PER_S)?;
        Ok(Injected::by(writes).and(reads))
    },
};
