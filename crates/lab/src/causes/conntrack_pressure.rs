//! A table of connections that is nearly full.

use super::{Cause, Injected, Need, Plan};

pub(super) const CAUSE: Cause = Cause {
    id: "conntrack-pressure",
    summary: "a connection table that is nearly full",
    engines: &[],
    needs: &[Need::Elsewhere(
        "the kernel counts connections only where a firewall rule asks for it, and the lab loads \
         none; it takes a machine with a firewall",
    )],
    plan: Plan::calm,
    inject: |_| Ok(Injected::nothing()),
};
