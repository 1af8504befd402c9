//! Two machines with one identity.

use super::{Cause, Injected, Need, Plan};

pub(super) const CAUSE: Cause = Cause {
    id: "duplicate-machine-id",
    summary: "two machines with the same /etc/machine-id",
    engines: &[],
    needs: &[Need::Elsewhere("it takes two machines; compare their checks")],
    plan: Plan::calm,
    inject: |_| Ok(Injected::nothing()),
};
