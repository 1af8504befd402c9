//! How CPUs sleep when they are idle, and what could keep them awake.

use untax_core::host::HostFacts;
use untax_core::idle::{HALT_POLL_NS, IdleState, SHALLOW_US};

/// What an idle CPU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle<'a> {
    /// It looks for work, for long enough.
    Polls,
    /// It halts at once, or nearly, and its governor could let it look for work: for how long now, ns.
    HaltsThough(u64),
    /// It sleeps in this state at most, which takes long to leave.
    SleepsIn(&'a IdleState),
    /// It sleeps in no state that takes long to leave.
    Dozes,
    /// It halts, and only the hypervisor knows what that takes.
    Halts,
}

impl<'a> Idle<'a> {
    /// That of a host; `None` where too little is known of it.
    pub fn of(host: &'a HostFacts) -> Option<Self> {
        let idle = host.cpuidle.value();
        let is_guest = host.virtualization.value().is_some_and(|kind| kind != "none");
        let by_haltpoll =
            idle.is_some_and(|idle| idle.governor.value().is_some_and(|name| name == "haltpoll"));
        if let Some(poll) = host.haltpoll.value().filter(|_| by_haltpoll) {
            let polls = poll.poll_ns >= HALT_POLL_NS;
            return Some(if polls { Self::Polls } else { Self::HaltsThough(poll.poll_ns) });
        }
        let halts = is_guest.then_some(Self::Halts);
        let Some(states) = idle.and_then(|idle| idle.states.value()) else { return halts };
        let limit = host.power_limits.value().and_then(|limits| limits.latency_us.value());
        let is_allowed = |state: &&IdleState| {
            state.disabled_on.is_empty() && limit.is_none_or(|limit| state.latency_us <= *limit)
        };
        let deepest = states.iter().filter(is_allowed).max_by_key(|state| state.latency_us);
        match deepest {
            Some(state) if state.latency_us > SHALLOW_US => Some(Self::SleepsIn(state)),
            _ if is_guest => halts,
            _ => Some(Self::Dozes),
        }
    }

    /// Whether to wake it takes long.
    pub fn sleeps(self) -> bool {
        !matches!(self, Self::Polls | Self::Dozes)
    }

    /// The remedy that keeps it awake.
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Self::HaltsThough(_) => Some("halt-poll"),
            Self::SleepsIn(_) => Some("cpu-latency"),
            Self::Polls | Self::Dozes | Self::Halts => None,
        }
    }

    /// How a person keeps it awake.
    pub fn fix(self) -> &'static str {
        match self {
            Self::HaltsThough(_) => {
                "let idle CPUs poll before they halt (guest_halt_poll_ns), if the host's owner agrees"
            }
            Self::SleepsIn(_) => {
                "forbid deep sleep on the database's CPUs (PM QoS, cpu_dma_latency), if power allows"
            }
            Self::Polls | Self::Dozes => {
                "put clients and database on the same CPUs, or send more requests at once"
            }
            Self::Halts => {
                "ask the host's owner for halt polling (kvm.halt_poll_ns), or load cpuidle_haltpoll"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::{self, Present};
    use untax_core::idle::{CpuIdle, HaltPoll, PowerLimits};

    fn state(name: &str, latency_us: u64) -> IdleState {
        IdleState {
            name: name.to_owned(),
            latency_us,
            usage: Present(1),
            time_us: Present(1),
            disabled_on: Vec::new(),
        }
    }

    fn host(governor: &str, states: Vec<IdleState>) -> HostFacts {
        HostFacts {
            cpuidle: Present(CpuIdle {
                driver: "a driver".to_owned(),
                governor: Present(governor.to_owned()),
                states: Present(states),
            }),
            virtualization: Present("none".to_owned()),
            ..HostFacts::unknown("not read")
        }
    }

    #[test]
    fn a_guest_that_halts_at_once_could_poll() {
        let mut guest = host("haltpoll", vec![state("POLL", 0), state("haltpoll idle", 1)]);
        let poll = |poll_ns| {
            Present(HaltPoll {
                poll_ns,
                grow_start_ns: Reading::absent("not read"),
                allow_shrink: Reading::absent("not read"),
            })
        };
        guest.haltpoll = poll(0);
        assert_eq!(Idle::of(&guest), Some(Idle::HaltsThough(0)));
        guest.haltpoll = poll(HALT_POLL_NS);
        assert_eq!(Idle::of(&guest), Some(Idle::Polls));
        // The module is there, and another governor is used.
        let mut other = host("menu", vec![state("C1", 2)]);
        other.haltpoll = poll(0);
        assert_eq!(Idle::of(&other), Some(Idle::Dozes));
    }

    #[test]
    fn the_deepest_state_that_is_allowed_counts() {
        let mut metal = host("menu", vec![state("C1", 2), state("C6", 133)]);
        assert!(matches!(Idle::of(&metal), Some(Idle::SleepsIn(state)) if state.name == "C6"));
        metal.power_limits = Present(PowerLimits {
            latency_us: Present(3),
            holders: vec!["tuned (pid 812)".to_owned()],
            of_cpus: Present(Vec::new()),
        });
        assert_eq!(Idle::of(&metal), Some(Idle::Dozes), "PM QoS forbids it");
        let mut forbidden = state("C6", 133);
        forbidden.disabled_on = vec![0, 1];
        assert_eq!(Idle::of(&host("menu", vec![state("C1", 2), forbidden])), Some(Idle::Dozes));
    }

    #[test]
    fn without_cpuidle_a_guest_halts_and_of_others_nothing_is_known() {
        let unknown = HostFacts::unknown("not read");
        assert_eq!(Idle::of(&unknown), None);
        let guest = HostFacts { virtualization: Present("kvm".to_owned()), ..unknown };
        assert_eq!(Idle::of(&guest), Some(Idle::Halts));
    }
}
