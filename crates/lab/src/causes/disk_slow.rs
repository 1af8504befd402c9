//! A disk that does few operations a second.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Engine;

/// What a single spinning disk does, and what a small cloud volume does.
const STRONG_PER_S: u64 = 60;
const MILD_PER_S: u64 = 1250;

/// One request after the other of 0.5 ms, which the rule takes for ordinary: removing the cause is to
/// put such a disk there, and not this machine's own memory.
const ORDINARY_PER_S: u64 = 2000;

pub(super) const CAUSE: Cause = Cause {
    id: "disk-slow",
    summary: "a data disk that does 60 writes a second rather than 2000, under commits that are flushed",
    mild: Some("a disk that does 1250"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::LoopDevice],
    takes: None,
    environment: |engine, _| Environment {
        disk_requests_per_s: Some(ORDINARY_PER_S),
        ..Environment::durable(engine)
    },
    inject: |testbed| {
        Ok(Guards::of(testbed.limit_requests(testbed.dose().of(STRONG_PER_S, MILD_PER_S))?))
    },
};
