//! The `sched_ext` backend: a program in the kernel chooses the CPU of each thread that wakes.
//!
//! Threads of the instances get the scheduling class of that program, all others keep theirs. The CPUs that an
//! instance prefers and may use come from the same policy as those of the user-space backend.

mod error;
mod program;
mod refusal;

pub use error::ExtError;
pub use refusal::Refusal;

use error::MOST_INSTANCES;
use program::Program;
use untax_core::cpus::Cpus;
use untax_core::host::CgroupLayout;
use untax_host::Host;

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
