//! The machine that a bench runs on, and the control group that limits it.

use untax_core::Reading;
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
    /// How idle CPUs sleep: with few clients that decides more than what is compared.
    pub idle: String,
}

impl Machine {
    /// The machine of these facts.
    pub fn of(host: &HostFacts) -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            cpu_model: host.cpu.value().map_or_else(unknown, |cpu| cpu.model.clone()),
            kernel_release: host.kernel.value().map_or_else(unknown, |k| k.release.clone()),
            idle: idle_line(host),
        }
    }
}

/// How idle CPUs sleep here, in one line.
fn idle_line(host: &HostFacts) -> String {
    let driver = match &host.cpuidle {
        Reading::Present(idle) => {
            let governor = idle.governor.value().map_or("unknown", String::as_str);
            format!("driver {}, governor {governor}", idle.driver)
        }
        gap => gap.why().unwrap_or_default(),
    };
    match &host.haltpoll {
        Reading::Present(poll) => format!("{driver}, guest_halt_poll_ns {}", poll.poll_ns),
        _ => driver,
    }
}

/// The control group of this process, where it can be told.
pub fn own_cgroup(host: &HostFacts) -> Option<Cgroup> {
    let layout = host.cgroup.value()?;
    cgroup::of_process(&Host::live(), layout, std::process::id()).into_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::idle::{CpuIdle, HaltPoll};

    #[test]
    fn the_knob_is_named_and_a_machine_without_it_says_why() {
        let mut host = HostFacts::unknown("not read");
        assert_eq!(idle_line(&host), "not read");
        host.cpuidle = Reading::Present(CpuIdle {
            driver: "haltpoll".to_owned(),
            governor: Reading::Present("haltpoll".to_owned()),
            states: Reading::absent("not read"),
        });
        assert_eq!(idle_line(&host), "driver haltpoll, governor haltpoll");
        host.haltpoll = Reading::Present(HaltPoll {
            poll_ns: 200_000,
            grow_start_ns: Reading::absent("not read"),
            allow_shrink: Reading::absent("not read"),
        });
        assert!(idle_line(&host).ends_with(", guest_halt_poll_ns 200000"));
    }
}
