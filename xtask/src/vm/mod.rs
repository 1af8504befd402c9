//! The guest machine: an emulated host with several NUMA nodes, cgroup v2 and every controller,
//! for what the machine at hand does not have or must not be changed for.
//!
//! Time in the guest is emulated, so nothing is measured there. The kernel comes from
//! `scripts/vm-kernel.sh`, the root is this machine's own, shared read-only over virtiofs, and
//! process 1 is `init.sh`; there is no image to build.

mod guest;
mod options;

use anyhow::Result;
use clap::Subcommand;
use guest::Guest;
use options::Run;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub enum Tool {
    /// Boot a guest, run a command in it as root and end with the command's status.
    Run(Run),
}

impl Tool {
    pub fn run(self) -> Result<ExitCode> {
        let Self::Run(run) = self;
        run.check()?;
        let guest = Guest::start(&run, &run.kernel()?)?;
        guest.finish(run.console)
    }
}
