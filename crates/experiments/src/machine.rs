//! The machine that a bench runs on, and the control group that limits it.

use untax_core::database::Cgroup;
use untax_core::host::HostFacts;
use untax_host::{Host, cgroup};

/// The machine that a result holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processor.
    pub cpu_model: String,
    /// The kernel.
    pub kernel_release: String,
}

impl Machine {
    /// The machine of these facts.
    pub fn of(host: &HostFacts) -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            cpu_model: host.cpu.value().map_or_else(unknown, |cpu| cpu.model.clone()),
            kernel_release: host.kernel.value().map_or_else(unknown, |k| k.release.clone()),
        }
    }
}

/// The control group of this process, where it can be told.
pub fn own_cgroup(host: &HostFacts) -> Option<Cgroup> {
    let layout = host.cgroup.value()?;
    cgroup::of_process(&Host::live(), layout, std::process::id()).into_value()
}
