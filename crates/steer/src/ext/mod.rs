//! The `sched_ext` backend: a program in the kernel chooses the CPU of each thread that wakes.
//!
//! Threads of the instances get the scheduling class of that program, all others keep theirs. The CPUs that an
//! instance prefers and may use come from the same policy as those of the user-space backend.

mod program;
mod refusal;

pub use refusal::Refusal;

use program::Program;
use untax_core::cpus::Cpus;
use untax_core::host::CgroupLayout;
use untax_host::Host;

/// `MOST_INSTANCES` of `soft.bpf.c`.
const MOST_INSTANCES: usize = 64;

/// Why the kernel's scheduler is not extended.
#[derive(Debug, thiserror::Error)]
pub enum ExtError {
    /// It would do harm here, or cannot be.
    #[error("the sched_ext program is not loaded here; --backend user works")]
    Refused(#[from] Refusal),
    /// There is no room for so many.
    #[error("--backend ext steers {most} instances at most, not {0}; name fewer", most = MOST_INSTANCES)]
    TooMany(usize),
    /// The kernel does not take the program.
    #[error("the kernel does not load the sched_ext program{said}; --backend user works here")]
    Load {
        /// What libbpf said last.
        said: String,
        /// Why.
        source: libbpf_rs::Error,
    },
    /// Its CPUs cannot be set.
    #[error("the sched_ext program does not take CPUs {0}; --backend user works here")]
    Cpus(Cpus),
    /// The kernel ended the program.
    #[error(
        "the kernel ended the sched_ext program ({0}), and the threads are scheduled as before; start \
         untax steer again, or with --backend user"
    )]
    Ended(String),
}

/// A program that schedules the instances' threads, until this is dropped.
pub(crate) struct Ext {
    program: Program,
    preferred: Vec<Cpus>,
}

impl Ext {
    /// Loads and attaches the program. No thread has its class yet.
    pub(crate) fn start(
        host: &Host,
        layout: Option<&CgroupLayout>,
        preferred: Vec<Cpus>,
        roots: &[u32],
    ) -> Result<Self, ExtError> {
        if roots.len() > MOST_INSTANCES {
            return Err(ExtError::TooMany(roots.len()));
        }
        refusal::look(host, layout, roots)?;
        let mut program = Program::load(roots)?;
        for (place, cpus) in preferred.iter().enumerate() {
            program.set(place, cpus, cpus)?;
        }
        program.attach()?;
        Ok(Self { program, preferred })
    }

    /// Gives an instance these CPUs beside its preferred ones. Where none of its preferred CPUs is among them,
    /// they are at home on these.
    pub(crate) fn give(&mut self, place: usize, cpus: &Cpus) -> Result<(), ExtError> {
        let home = self.preferred[place].and(cpus);
        let home = if home.is_empty() { cpus } else { &home };
        self.program.set(place, home, cpus)
    }

    /// Fails once the kernel has ended the program.
    pub(crate) fn check(&self) -> Result<(), ExtError> {
        self.program.ended().map_or(Ok(()), |why| Err(ExtError::Ended(why)))
    }
}
