//! Why the kernel's scheduler is not extended.

use super::refusal::Refusal;
use untax_core::cpus::Cpus;

/// `MOST_INSTANCES` of `soft.bpf.c`.
pub(super) const MOST_INSTANCES: usize = 64;

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
