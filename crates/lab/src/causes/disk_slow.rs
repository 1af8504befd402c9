//! A disk that does few operations a second.

use super::{Cause, Injected, Need, Plan};
use crate::disk::Limit;
use crate::work::Engine;

/// What a single spinning disk does.
const OPERATIONS_PER_S: u64 = 60;

/// What a small cloud volume does.
const MILD_PER_S: u64 = 1500;

pub(super) const CAUSE: Cause = Cause {
    id: "disk-slow",
    summary: "a data disk that does 60 writes a second, under commits that are flushed",
    mild: Some("a disk that does 1500"),
    engines: &Engine::ALL,
    needs: &[Need::Root, Need::LoopDevice],
    takes: None,
    plan: |engine, _| Plan::durable(engine),
    inject: |scene| {
        let disk = scene.disk()?;
        let a_second = scene.dose().of(OPERATIONS_PER_S, MILD_PER_S);
        let writes = disk.limit(scene.group(), Limit::WriteOperations, a_second)?;
        let reads = disk.limit(scene.group(), Limit::ReadOperations, a_second)?;
        Ok(Injected::by(writes).and(reads))
    },
};
