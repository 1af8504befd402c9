//! A container that has its host's identity.

use crate::cause::{Cause, Guards, Need};
use crate::environment::Environment;
use untax_scenes::Engine;
use untax_scenes::Runtime;

pub(super) const CAUSE: Cause = Cause {
    id: "duplicate-machine-id",
    summary: "a container with its host's /etc/machine-id rather than one of its own",
    mild: None,
    engines: &Engine::ALL,
    left_out: &[],
    needs: &[Need::Root, Need::Tool("runc", "runc")],
    takes: Some("an identity"),
    environment: |engine, _| Environment {
        runtime: Runtime::Runc,
        cause_runtime: Some(Runtime::Clone),
        ..Environment::healthy(engine)
    },
    inject: |_| Ok(Guards::none()),
};
