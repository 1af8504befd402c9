//! `numa-balancing`: the kernel leaves pages where they are. Sources: kernel.org, admin-guide/sysctl/kernel,
//! `numa_balancing`.

use crate::case::Case;
use crate::remedy::{Draft, Remedy};
use crate::sysctl::Sysctl;

pub const REMEDY: Remedy = Remedy {
    id: "numa-balancing",
    summary: "NUMA balancing off, now and after every boot",
    answers: &["numa-balancing"],
    plan,
};

const NAME: &str = "kernel.numa_balancing";
const DROP_IN: &str = "/etc/sysctl.d/90-untax-numa.conf";

/// Balancing between nodes as it is by default. Other values are for slow memory beside fast, which is
/// of no use without it.
const BALANCING: &str = "1";

fn plan(case: &Case) -> Draft {
    let sysctls = case.snapshot.host.sysctls.value();
    let Some(now) = sysctls.and_then(|all| all.get(NAME)).filter(|now| *now == BALANCING) else {
        return Draft::default();
    };
    let databases = case.databases_or_all();
    let change = Sysctl { remedy: REMEDY.id, name: NAME, drop_in: DROP_IN };
    Draft { steps: change.steps(&databases, now, "0"), ..Draft::default() }
}
