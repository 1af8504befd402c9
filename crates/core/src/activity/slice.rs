//! What the threads of a database did while they were traced.

use super::causes::Cause;
use super::kinds::{Doing, Part, Polling};
use super::sampled::Sampled;
use crate::Seconds;
use crate::database::Model;
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// What the threads of a database did for a while, those that were started meanwhile included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slice {
    /// For how long.
    pub traced_s: Seconds,
    /// How much of the window is nearer to it than to another slice; none where nothing else was.
    /// Pauses follow what costs much to trace: counted alike, slices would tell of quiet times most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for_s: Option<Seconds>,
    /// What they did, and what those did that they waited for: each second once.
    pub spent: Vec<Spent>,
    /// Whether it was followed whom they waited for; it was not in older runs.
    #[serde(default)]
    pub followed: bool,
    /// The time on a CPU of new server processes until they waited for their first request, and after
    /// their last one, and of the main process while it started them.
    pub connecting_s: Seconds,
    /// The time on a CPU of the first requests of new server processes.
    #[serde(default)]
    pub first_s: Seconds,
    /// How much of their waits inside file calls was in waits of [`HANG_S`](super::HANG_S) and more; background
    /// processes left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hung_s: Option<Seconds>,
    /// Where those on a CPU were; none where stacks cannot be sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
}

/// The longest single wait of one kind; one that goes on counts as far as it went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Longest {
    /// What the thread did.
    pub doing: Doing,
    /// For how long.
    pub time_s: Seconds,
}

/// Time that threads of one kind spent in one way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Spent {
    /// The kind of thread.
    pub polling: Polling,
    /// What it did.
    pub doing: Doing,
    /// What the thread did meanwhile that ended this wait; none where it did this by itself, or no thread of
    /// those that are watched ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<Cause>,
    /// For how long, summed over threads.
    pub time_s: Seconds,
}

impl Slice {
    /// A slice in which threads did this, without a sample and without a new connection.
    pub fn traced(traced_s: Seconds, spent: Vec<Spent>) -> Self {
        Self {
            traced_s,
            stands_for_s: None,
            spent,
            followed: true,
            connecting_s: Seconds(0.0),
            first_s: Seconds(0.0),
            hung_s: None,
            sampled: None,
        }
    }

    /// Time of some kind, summed over threads.
    pub(super) fn sum(&self, counts: impl Fn(&Spent) -> bool) -> f64 {
        self.spent.iter().filter(|s| counts(s)).map(|s| s.time_s.0).fold(0.0, f64::add)
    }

    /// How much of the window it stands for, itself included.
    pub(super) fn stands_for_s(&self) -> f64 {
        self.stands_for_s.unwrap_or(self.traced_s).0
    }

    /// What one second of it stands for.
    pub(super) fn weight(&self) -> f64 {
        if self.traced_s.0 > 0.0 { self.stands_for_s() / self.traced_s.0 } else { 1.0 }
    }
}

/// So many requests of a new server process are told from its later ones ([`Slice::first_s`]).
pub const FIRST_REQUESTS: f64 = 4.0;

impl Spent {
    /// Time that threads did this for by themselves.
    pub fn own(polling: Polling, doing: Doing, time_s: Seconds) -> Self {
        Self { polling, doing, behind: None, time_s }
    }

    /// Which part of the database's time this is. A wait for another thread that itself waited for a disk or for
    /// memory is a wait for these.
    pub fn part(&self, model: Model) -> Part {
        let is_unjudged = self.doing == Doing::Futex && model == Model::Unknown;
        match (self.doing.part(self.polling, model), self.behind) {
            (Part::Lock, Some(Cause::Disk | Cause::Kernel | Cause::DirtyPages)) => Part::Disk,
            (Part::Lock, Some(Cause::Memory)) => Part::Reclaim,
            // Nobody ended it who had worked meanwhile: it waited for something to do.
            (Part::Unaccounted, None | Some(Cause::Idle)) if is_unjudged => Part::Idle,
            (part, _) => part,
        }
    }

    /// Where it goes: to what the thread did, or to what the thread did that it waited for.
    pub fn cause(&self) -> Cause {
        let is_for_others = matches!(self.doing, Doing::Futex | Doing::PollPeer);
        let own = if is_for_others { Cause::Unresolved } else { self.doing.cause() };
        self.behind.unwrap_or(own)
    }

    /// Whether it is active time that goes to this, by a thread that somebody waits for in turn.
    ///
    /// A process that wakes by a timer, and never for a client, writes behind the backs of those
    /// that serve one. (Threads may wait for their clients with a time-out.)
    pub fn goes_to(&self, cause: Cause, model: Model) -> bool {
        self.cause() == cause && self.is_active(model)
    }

    /// Whether it is active time of a thread that serves requests.
    pub fn is_active(&self, model: Model) -> bool {
        self.part(model).is_active() && !self.in_background(model)
    }

    /// Whether it is of a thread that serves clients.
    pub fn serves(&self, model: Model) -> bool {
        self.polling != Polling::Never && !self.in_background(model)
    }

    /// Whether it is of a thread that serves no requests itself: a helper; a process that wakes by a timer alone,
    /// because a worker of a parallel query polls for nobody; where one thread serves all clients, another one, that
    /// saves what it holds, say. Of threads that serve a client each nobody knows it until they did so.
    pub fn in_background(&self, model: Model) -> bool {
        match model {
            Model::Process => matches!(self.polling, Polling::Timed | Polling::Helper),
            Model::Loop => self.polling == Polling::Never,
            Model::Thread | Model::Unknown => self.polling == Polling::Helper,
        }
    }
}
