//! What one instance sees of a sample, and what it does then.

use super::instance::Instance;
use super::owners::AWAKE_CPUS;
use super::sample::{Sample, Seen, Why};
use super::state::State;
use super::tunables::HOME;
use crate::topology::Topology;
use untax_core::cpus::Cpus;

/// Samples in a row that must say the same before an instance spills: one alone may be a spike.
const SPILL_TICKS: u32 = 2;

/// The busy share up to which a CPU counts as idle enough for others.
const IDLE: f64 = 0.5;

/// A step is this part of the preferred CPUs: a load that needs a few more is not spread over the machine.
const STEPS: usize = 4;

/// What one instance sees of a sample.
pub struct View<'a> {
    pub instance: &'a Instance,
    pub topology: &'a Topology,
    pub sample: &'a Sample,
    pub seen: &'a Seen,
    pub home: &'a Cpus,
    /// CPUs that their owners need themselves.
    pub reserved: Cpus,
    pub given: &'a Cpus,
}

impl View<'_> {
    pub fn now_s(&self) -> f64 {
        self.sample.now_s
    }

    pub fn hold_s(&self) -> f64 {
        self.instance.tunables.hold.as_secs_f64()
    }

    /// Changes the state; why its CPUs changed, if they did, and whether its work is to be read.
    pub fn advance(&self, state: &mut State) -> (Option<Why>, bool) {
        if let Some(why) = self.confine(state) {
            return (Some(why), false);
        }
        let is_full = self.is_full(state);
        state.full_ticks = if is_full { state.full_ticks + 1 } else { 0 };
        let (changed, ask) = self.judge(state, is_full);
        if changed.is_some() || state.trial.is_at_home() {
            return (changed, ask);
        }
        (self.go_home(state).or_else(|| self.spill(state)), ask)
    }

    /// What cannot wait: the first CPUs, another cpuset, an owner that needs its CPUs.
    fn confine(&self, state: &mut State) -> Option<Why> {
        let why = if state.cpus.is_empty() {
            Why::Start
        } else if !state.cpus.is_within(&self.seen.allowed) || !self.home.is_within(&state.cpus) {
            Why::Cpuset
        } else if !state.cpus.and(&self.reserved).is_empty() {
            Why::Evict
        } else {
            return None;
        };
        let kept = state.cpus.and(&self.seen.allowed).without(&self.reserved).or(self.home);
        if kept == state.cpus {
            return None;
        }
        state.shrink(kept, self.now_s());
        Some(why)
    }

    /// Whether its rule says that it needs more CPUs than it has.
    fn is_full(&self, state: &State) -> bool {
        let (own, all) =
            (self.sample.busy_share(&state.cpus), self.sample.busy_share(&self.seen.allowed));
        self.seen.used_cpus > AWAKE_CPUS && self.instance.tunables.rule.spills(own, all, 1.0)
    }

    /// CPUs that it does not have and that idle, the nearest first.
    fn idle(&self, state: &State) -> Vec<u32> {
        let others =
            self.seen.allowed.without(&state.cpus).without(&self.reserved).without(self.given);
        let is_idle = |cpu: &u32| self.sample.busy.get(cpu).is_some_and(|busy| *busy <= IDLE);
        self.topology.nearest(self.home, &others.iter().filter(is_idle).collect())
    }

    fn spill(&self, state: &mut State) -> Option<Why> {
        let rests = state.is_grown || self.now_s() - state.changed_s >= self.hold_s();
        if state.full_ticks < SPILL_TICKS || !rests || self.now_s() < state.back_off_until_s {
            return None;
        }
        let size = self.home.len().div_ceil(STEPS);
        let more: Cpus = self.idle(state).into_iter().take(size).collect();
        if more.is_empty() {
            return None;
        }
        state.note_return(self.now_s(), self.hold_s());
        state.grow(state.cpus.or(&more), self.now_s());
        self.begin_trial(state);
        Some(Why::Spill)
    }

    /// Home, when its load would fit there with some room for as long as it takes to believe it.
    fn go_home(&self, state: &mut State) -> Option<Why> {
        let used = (self.seen.used_cpus / self.home.len() as f64).min(1.0);
        let all = self.sample.busy_share(&self.seen.allowed);
        if state.cpus == *self.home || self.instance.tunables.rule.spills(used, all, HOME) {
            state.calm_since_s = None;
            return None;
        }
        let since_s = *state.calm_since_s.get_or_insert(self.now_s());
        let calm_s = self.now_s() - since_s;
        let rests = self.now_s() - state.changed_s >= self.hold_s();
        if !rests || calm_s < self.hold_s() * state.patience {
            return None;
        }
        state.shrink(self.home.clone(), self.now_s());
        state.came_home_s = Some(self.now_s());
        Some(Why::Home)
    }
}
