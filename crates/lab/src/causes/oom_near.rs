//! Memory that grows towards its limit.

use super::{Cause, Injected, Need, Plan};
use crate::work::{Engine, Kind, Work};

/// What is left under the limit: a minute of growth, or ten where the machine is slow, so that it is seen and
/// not met.
const LEFT_BYTES: u64 = 512 << 20;

pub(super) const CAUSE: Cause = Cause {
    id: "oom-near",
    summary: "a Redis that keeps growing, 512 MiB below its memory limit",
    mild: None,
    engines: &[Engine::Redis],
    needs: &[Need::Root],
    takes: Some("the memory that is left"),
    plan: |engine, _| Plan {
        work: Some(Work { kind: Kind::Grows, clients: 1 }),
        settling_s: 1,
        ..Plan::calm(engine)
    },
    inject: |scene| {
        let usage = scene.group().charged_bytes()?;
        Ok(Injected::by(scene.group().limit_memory(usage + LEFT_BYTES)?))
    },
};
