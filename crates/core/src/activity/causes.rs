//! Where the time of threads goes, whoever they wait for.

use super::kinds::{Doing, Polling};
use crate::Seconds;
use serde::{Deserialize, Serialize};

/// What a second of a thread goes to: what the thread does itself, or what the thread does that it waits for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Computing.
    Cpu,
    /// Waiting for a CPU that others have.
    RunQueue,
    /// Held back by a CPU limit.
    Throttled,
    /// Waiting until a CPU that slept is awake.
    WakeUp,
    /// Waiting for a block device.
    Disk,
    /// Waiting in the kernel for something else: a journal, a file's lock, the address space.
    Kernel,
    /// Held back for having dirtied too many pages.
    DirtyPages,
    /// Freeing memory, or waiting for it.
    Memory,
    /// Waiting until the network takes data.
    Network,
    /// Waiting for a client or a timer.
    Idle,
    /// Not known.
    Unresolved,
}

impl Cause {
    /// All of them, in the order in which the probe numbers them.
    pub const ALL: [Self; 11] = [
        Self::Cpu,
        Self::RunQueue,
        Self::Throttled,
        Self::WakeUp,
        Self::Disk,
        Self::Kernel,
        Self::DirtyPages,
        Self::Memory,
        Self::Network,
        Self::Idle,
        Self::Unresolved,
    ];
}

impl Doing {
    /// Where its time goes while no other thread is known to end it. A wait in a futex that none ends, ends by
    /// itself; one that ends another thread's wait for what it reads has waited for the disk.
    pub fn cause(self) -> Cause {
        match self {
            Self::OnCpu => Cause::Cpu,
            Self::Contended => Cause::RunQueue,
            Self::Throttled => Cause::Throttled,
            Self::WakeUp => Cause::WakeUp,
            Self::Disk | Self::AsyncIo => Cause::Disk,
            Self::Filesystem | Self::Fault => Cause::Kernel,
            Self::DirtyThrottled => Cause::DirtyPages,
            Self::ReclaimOnCpu | Self::ReclaimStalled => Cause::Memory,
            Self::Send => Cause::Network,
            Self::Other => Cause::Unresolved,
            Self::Futex
            | Self::Receive
            | Self::Poll
            | Self::PollPeer
            | Self::Dormant
            | Self::Sleep => Cause::Idle,
        }
    }
}

/// What other threads did while threads of one kind waited for them: a part of the time of these waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behind {
    /// The kind of thread that waited.
    pub polling: Polling,
    /// How it waited.
    pub doing: Doing,
    /// What the thread did that ended the wait.
    pub cause: Cause,
    /// For how long, summed over threads.
    pub time_s: Seconds,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_numbered_in_the_order_of_the_list() {
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index);
        }
    }
}
