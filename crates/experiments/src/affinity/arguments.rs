//! The arguments of `untax bench affinity`.

use crate::platform::Arguments as Common;

/// Measure what affinity is worth: none, hard partitions, and soft affinity, with one or two busy instances
///
/// The bench runs two servers, each with CPUs that it prefers, and clients on the same CPUs. With
/// hard partitions, the servers have no other CPUs. With soft affinity, untax steer gives them idle
/// CPUs while that pays. The bench needs at least two CPUs that nobody else uses.
#[derive(Debug, clap::Parser)]
#[group(id = "affinity")]
#[command(
    after_help = "Examples:\n  untax bench affinity                           the most telling work, 10 minutes\n  \
                  untax bench affinity --list                    arms and work, and why some cannot run here\n  \
                  untax bench affinity --workloads postgres-two --fail-if 'postgres-two:soft/hard < 0.95'\n  \
                  untax bench affinity --workload 'make -j8'     a command of yours, in one and in two instances\n  \
                  untax bench affinity --model 2x22              the published table in a model; measures nothing"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) common: Common,
    /// Work of your own: a shell command that runs once in each busy instance; its time is measured
    #[arg(long, value_name = "CMD")]
    pub(super) workload: Option<String>,
    /// Show a model of a machine of two nodes instead: the order of ways to place threads, not what they
    /// are worth
    #[arg(long, value_name = "MACHINE", value_parser = ["2x22", "2x64"])]
    pub(super) model: Option<String>,
}
