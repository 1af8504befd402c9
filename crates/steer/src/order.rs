//! What to steer, and why it is not.

use crate::ext::ExtError;
use crate::policy::Tunables;
use crate::resolve::Candidate;
use crate::threads::GiveError;
use std::io;
use std::time::Duration;
use untax_changes::{LockError, TemporaryError};
use untax_core::cpus::Cpus;

/// An instance that a person chose.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The database.
    pub candidate: Candidate,
    /// Processes that are steered as parts of it, with all that descend from them: its pooler, or its clients.
    pub along: Vec<u32>,
    /// Its preferred CPUs.
    pub preferred: Cpus,
    /// What was set for it.
    pub tunables: Tunables,
}

/// The means by which threads get their CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// Masks of threads, on any kernel.
    #[default]
    User,
    /// A `sched_ext` program in the kernel.
    Ext,
}

impl Backend {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Ext => "ext",
        }
    }
}

/// What to steer.
#[derive(Debug, Clone)]
pub struct Order {
    /// By which means.
    pub backend: Backend,
    /// The instances.
    pub instances: Vec<Chosen>,
    /// The time between two samples, unless that costs too much.
    pub period: Duration,
    /// The id of this run.
    pub run: String,
}

/// Why databases are not steered, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// Somebody else does.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What was changed would not be put back, or was not.
    #[error(transparent)]
    Journal(#[from] TemporaryError),
    /// The preferred CPUs are not all in the cpuset.
    #[error(
        "CPUs {preferred} are not all among those that {name} may use ({allowed}); choose others"
    )]
    Outside {
        /// The instance.
        name: String,
        /// Its preferred CPUs.
        preferred: Cpus,
        /// Those of its cpuset that are online.
        allowed: Cpus,
    },
    /// A thread chose just these CPUs itself.
    #[error(
        "a thread of {name} has chosen CPUs {preferred} itself, and would be put back to all of its \
         cpuset in the end; choose other CPUs"
    )]
    Own {
        /// The instance.
        name: String,
        /// Its preferred CPUs.
        preferred: Cpus,
    },
    /// It ended.
    #[error("process {pid} of {name} has ended; start it and try again")]
    Ended {
        /// The instance.
        name: String,
        /// Its main process.
        pid: u32,
    },
    /// The program in the kernel knows one process of an instance, and its descendants.
    #[error(
        "--backend ext steers one process tree for each instance, and {name} has several; use --backend user"
    )]
    Along {
        /// The instance.
        name: String,
    },
    /// The machine's CPU time is not known.
    #[error("the CPU time of this machine is not known: {0}")]
    NoTime(String),
    /// The kernel refused.
    #[error("{name}")]
    Refused {
        /// The instance.
        name: String,
        /// Why.
        source: GiveError,
    },
    /// The program in the kernel cannot be, or was ended.
    #[error(transparent)]
    Ext(#[from] ExtError),
    /// The masks of threads cannot be read.
    #[error("the CPUs of threads of {name} cannot be read")]
    Unread {
        /// The instance.
        name: String,
        /// Why.
        source: io::Error,
    },
}
