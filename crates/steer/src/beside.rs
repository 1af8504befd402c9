//! Steering in a thread of its own, beside what a process measures.

use crate::event::{Event, Line, OwnCost};
use crate::order::{Order, SteerError};
use crate::steering::steer;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use untax_changes::{Lock, Program};
use untax_trials::Interrupt;

/// Steering that goes on until this is dropped.
pub struct Beside {
    end: Interrupt,
    thread: Option<JoinHandle<Result<(), SteerError>>>,
    events: Receiver<Event>,
}

/// What steering did and cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Done {
    /// The share of one CPU that it took.
    pub cpu_share: f64,
    /// How often it changed the CPUs of an instance.
    pub changes: u32,
}

impl Beside {
    /// Starts to steer, and returns when it has begun. The journal lies in the state directory.
    pub fn start(order: Order, state: &Path) -> Result<Self, SteerError> {
        let (end, state) = (Interrupt::default(), state.to_owned());
        let (sender, events) = channel();
        let interrupt = end.clone();
        let thread = std::thread::spawn(move || {
            let lock = Lock::to_steer(&state)?;
            let mut tell = |line: Line| {
                let _ = sender.send(line.event);
            };
            steer(&order, &Program::this(), &state, &lock, &interrupt, &mut tell)
        });
        let mut beside = Self { end, thread: Some(thread), events };
        // The first event is that it began; no event at all is an error.
        if beside.events.recv().is_err() {
            beside.join()?;
        }
        Ok(beside)
    }

    /// Whether it has ended by itself: no instance runs any more, or something failed.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it; all threads have all CPUs of their cpuset again when this returns.
    pub fn stop(mut self) -> Result<Done, SteerError> {
        self.end.raise();
        self.join()?;
        let mut done = Done::default();
        for event in self.events.try_iter() {
            match event {
                Event::Changed { .. } => done.changes += 1,
                Event::Ended { own: OwnCost { share, .. } } => done.cpu_share = share,
                _ => {}
            }
        }
        Ok(done)
    }

    fn join(&mut self) -> Result<(), SteerError> {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(Ok(()))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.end.raise();
        let _ = self.join();
    }
}
