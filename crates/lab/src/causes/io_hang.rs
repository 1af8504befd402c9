//! A filesystem that hangs for moments.

use super::{Cause, Injected, Need, Plan};
use crate::work::Engine;

/// How long it hangs, and how long it then works.
const FROZEN_S: f64 = 0.6;
const FREE_S: f64 = 0.4;

pub(super) const CAUSE: Cause = Cause {
    id: "io-hang",
    summary: "a filesystem that is frozen for 0.6 s out of every second, under flushed commits",
    engines: &Engine::ALL,
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("fsfreeze", "util-linux")],
    takes: None,
    plan: Plan::durable,
    inject: |scene| Ok(Injected::by(scene.disk()?.freezes(FROZEN_S, FREE_S)?)),
};
