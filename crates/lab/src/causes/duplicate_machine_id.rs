//! A container that has its host's identity.

use super::{Cause, Injected, Need, Plan};
use untax_scenes::Engine;
use untax_scenes::Place;

pub(super) const CAUSE: Cause = Cause {
    id: "duplicate-machine-id",
    summary: "a container with its host's /etc/machine-id rather than one of its own",
    mild: None,
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::Tool("runc", "runc")],
    takes: Some("an identity"),
    plan: |engine, _| Plan {
        place: Place::Runc,
        cause_place: Some(Place::Clone),
        ..Plan::calm(engine)
    },
    inject: |_| Ok(Injected::nothing()),
};
