//! A filesystem that hangs for moments.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Engine;

/// How long it hangs, and how long it then works.
const STRONG_S: (f64, f64) = (0.6, 0.4);
const MILD_S: (f64, f64) = (0.2, 0.8);

pub(super) const CAUSE: Cause = Cause {
    id: "io-hang",
    summary: "a filesystem that is frozen for 0.6 s out of every second, under flushed commits",
    mild: Some("frozen for 0.2 s out of every second, under clients that think"),
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::LoopDevice, Need::Tool("fsfreeze", "util-linux")],
    takes: None,
    environment: |engine, dose| Environment::durable(engine).with_think_time(engine, dose),
    inject: |testbed| {
        let (frozen_s, free_s) = testbed.dose().of(STRONG_S, MILD_S);
        Ok(Guards::of(testbed.disk()?.freeze_in_loop(frozen_s, free_s)?))
    },
};
