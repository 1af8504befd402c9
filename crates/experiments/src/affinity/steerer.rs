//! Steering beside a trial, in a thread of this process; its guard is a process of its own.

use crate::platform::Trouble;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use untax_changes::{Lock, Program};
use untax_core::Reading;
use untax_core::cpus::Cpus;
use untax_steer::event::{Event, OwnCost};
use untax_steer::policy::{Rule, Tunables};
use untax_steer::resolve::Candidate;
use untax_steer::{Chosen, Order, SteerError, steer};
use untax_trials::Interrupt;

/// A process tree and the CPUs that it prefers.
pub(super) struct Tree {
    pub(super) name: String,
    /// The id of its engine, by which its work is counted.
    pub(super) engine: &'static str,
    pub(super) pid: u32,
    pub(super) preferred: Cpus,
}

/// Steering that goes on until this is dropped.
pub(super) struct Steerer {
    end: Interrupt,
    thread: Option<JoinHandle<Result<(), SteerError>>>,
    events: Receiver<Event>,
}

/// What steering did and cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Steered {
    /// The share of one CPU that it took.
    pub(super) cpu_share: f64,
    /// How often it changed the CPUs of a tree.
    pub(super) changes: u32,
}

impl Steerer {
    /// Steers these trees by a rule. Holds and trials are shorter than by default: a trial of the bench has
    /// seconds to settle, not minutes.
    pub(super) fn start(state: &Path, trees: &[Tree], rule: Rule) -> Self {
        let tunables =
            Tunables { rule, hold: Duration::from_millis(500), judge: Duration::from_secs(2) };
        let chosen = |tree: &Tree| Chosen {
            candidate: Candidate {
                name: tree.name.clone(),
                engine: tree.engine.to_owned(),
                pid: tree.pid,
                memory: Reading::absent("not looked at"),
            },
            preferred: tree.preferred.clone(),
            tunables,
        };
        let order = Order {
            instances: trees.iter().map(chosen).collect(),
            period: Duration::from_millis(100),
            run: format!("affinity-{}", std::process::id()),
        };
        let (end, state): (Interrupt, PathBuf) = (Interrupt::default(), state.to_owned());
        let (sender, events) = channel();
        let interrupt = end.clone();
        let thread = std::thread::spawn(move || {
            let lock = Lock::to_steer(&state)?;
            let mut tell = |line: untax_steer::event::Line| {
                let _ = sender.send(line.event);
            };
            steer(&order, &Program::this(), &state, &lock, &interrupt, &mut tell)
        });
        Self { end, thread: Some(thread), events }
    }

    /// Ends it; all threads have all CPUs again when this returns.
    pub(super) fn stop(mut self) -> Result<Steered, Trouble> {
        self.end.raise();
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        if let Some(Err(error)) = ended {
            return Err(Trouble::of(&error));
        }
        let mut steered = Steered::default();
        for event in self.events.try_iter() {
            match event {
                Event::Changed { .. } => steered.changes += 1,
                Event::Ended { own: OwnCost { share, .. } } => steered.cpu_share = share,
                _ => {}
            }
        }
        Ok(steered)
    }
}

impl Drop for Steerer {
    fn drop(&mut self) {
        self.end.raise();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
