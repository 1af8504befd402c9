//! A container runtime that puts a kernel of its own in between.

use super::{Cause, Injected, Need, Plan};

pub(super) const CAUSE: Cause = Cause {
    id: "sandboxed-runtime",
    summary: "a server in a container of gVisor",
    engines: &[],
    needs: &[Need::Elsewhere("the lab cannot run servers in gVisor yet")],
    plan: Plan::calm,
    inject: |_| Ok(Injected::nothing()),
};
