//! Which CPUs each instance may use: a function of what was seen so far, and of nothing else.
//!
//! Each instance is at home on its preferred CPUs. It spills to others, the nearest first and step by
//! step, while its rule says so and they are idle. It goes home when its load fits there, and at once
//! where an owner of the other CPUs needs them. Whether a spill pays is measured on trial.

mod instance;
mod judge;
mod owners;
mod sample;
mod state;
mod trial;
mod tunables;
mod view;

pub use instance::Instance;
pub use owners::AWAKE_CPUS;
pub use sample::{Action, Sample, Seen, Why, Work};
pub use state::{State, Verdict};
pub use tunables::{FULL, HOME, Ratio, RatioError, Rule, Tunables, WORTH};

use crate::topology::Topology;
use owners::Owners;
use untax_core::cpus::Cpus;
use view::View;

/// What a sample leads to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// What to do.
    pub actions: Vec<Action>,
    /// The instances whose work is to be read soon.
    pub ask: Vec<usize>,
}

/// All instances and what became of them so far.
#[derive(Debug, Clone)]
pub struct Policy {
    instances: Vec<Instance>,
    topology: Topology,
    states: Vec<State>,
    owners: Owners,
}

impl Policy {
    /// A policy that has seen nothing yet.
    pub fn new(instances: Vec<Instance>, topology: Topology) -> Self {
        let states = instances.iter().map(|_| State::default()).collect();
        let owners = Owners::of(instances.len());
        Self { instances, topology, states, owners }
    }

    /// The instances.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// What became of each.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// What to do after a sample.
    pub fn step(&mut self, sample: &Sample) -> Step {
        let homes: Vec<Cpus> = self.instances.iter().zip(&sample.instances).map(home).collect();
        let before: Vec<Cpus> = self.states.iter().map(|state| state.cpus.clone()).collect();
        let holds: Vec<f64> =
            self.instances.iter().map(|i| i.tunables.hold.as_secs_f64()).collect();
        self.owners.look(sample, &homes, &holds, &before);
        let mut step = Step::default();
        // CPUs that were given away in this step are not idle for the next instance.
        let mut given = Cpus::default();
        for (place, seen) in sample.instances.iter().enumerate() {
            if seen.allowed.is_empty() {
                continue;
            }
            let view = View {
                instance: &self.instances[place],
                topology: &self.topology,
                sample,
                seen,
                home: &homes[place],
                reserved: self.owners.reserved_by_others(place).without(&homes[place]),
                given: &given,
            };
            let state = &mut self.states[place];
            let (why, ask) = view.advance(state);
            if let Some(why) = why {
                given = given.or(&state.cpus.without(&before[place]).without(&homes[place]));
                step.actions.push(Action { instance: place, cpus: state.cpus.clone(), why });
            }
            if ask {
                step.ask.push(place);
            }
        }
        step
    }
}

/// The preferred CPUs of an instance that it may use: all of its cpuset where that holds none of them.
fn home((instance, seen): (&Instance, &Seen)) -> Cpus {
    let home = instance.preferred.and(&seen.allowed);
    if home.is_empty() { seen.allowed.clone() } else { home }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
