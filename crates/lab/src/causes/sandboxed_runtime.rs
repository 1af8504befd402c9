//! A container runtime that puts a kernel of its own in between.

use super::{Cause, Injected, Need, Plan};
use crate::server::Place;
use crate::work::Engine;

/// Only Redis has clients that come in over TCP: a Unix socket that is made in a sandbox cannot be
/// reached from outside.
pub(super) const CAUSE: Cause = Cause {
    id: "sandboxed-runtime",
    summary: "a server in a sandbox of gVisor rather than a container of runc",
    mild: None,
    engines: &[Engine::Redis],
    needs: &[Need::Root, Need::Tool("runc", "runc"), Need::Tool("runsc", "runsc")],
    takes: None,
    plan: |engine, _| Plan {
        place: Place::Runc,
        cause_place: Some(Place::Gvisor),
        ..Plan::calm(engine)
    },
    inject: |_| Ok(Injected::nothing()),
};
