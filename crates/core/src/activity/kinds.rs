//! What a thread does, and the part of a database's time that this is.

use crate::database::Model;
use serde::{Deserialize, Serialize};

/// What a thread is doing; it is always doing exactly one of these.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Running.
    OnCpu,
    /// Running, to free memory for itself (direct reclaim).
    ReclaimOnCpu,
    /// Waiting for a CPU that others have.
    Contended,
    /// Held back by a CPU limit.
    Throttled,
    /// Waiting until a CPU that slept is awake: from the moment at which the thread was woken.
    WakeUp,
    /// Waiting for a block device.
    Disk,
    /// Waiting inside a file's system call, but not for a block device: for the journal, for a
    /// frozen filesystem, for another that writes the same file.
    Filesystem,
    /// Held back for having dirtied too many pages.
    DirtyThrottled,
    /// Waiting for memory: reclaim, `memory.high`, pages that were evicted too early.
    ReclaimStalled,
    /// Waiting in `futex` or a semaphore: for a lock, or for something to do.
    Futex,
    /// Waiting in a page fault that reads nothing, or to change its mappings.
    Fault,
    /// Waiting until the network takes data.
    Send,
    /// Waiting for data.
    Receive,
    /// Waiting in `epoll`, `poll` or `select`, and woken from outside.
    Poll,
    /// The same, but woken by a signal of another thread of this database.
    PollPeer,
    /// Waiting for events all through a slice: nobody asked anything of the thread.
    Dormant,
    /// Waiting for asynchronous I/O to complete.
    AsyncIo,
    /// Waiting for a timer, a signal or a child.
    Sleep,
    /// Waiting in a way of unknown meaning: in a system call that the table lists as unknown, say.
    Other,
}

impl Doing {
    /// All of them, in the order in which the probe numbers them.
    pub const ALL: [Self; 19] = [
        Self::OnCpu,
        Self::ReclaimOnCpu,
        Self::Contended,
        Self::Throttled,
        Self::WakeUp,
        Self::Disk,
        Self::Filesystem,
        Self::DirtyThrottled,
        Self::ReclaimStalled,
        Self::Futex,
        Self::Fault,
        Self::Send,
        Self::Receive,
        Self::Poll,
        Self::PollPeer,
        Self::Dormant,
        Self::AsyncIo,
        Self::Sleep,
        Self::Other,
    ];

    /// Which part of the database's time this is.
    ///
    /// What a thread waits for follows from how its engine serves clients. Processes share
    /// nothing but locks, so their futexes are locks; the latches of other processes (`PollPeer`)
    /// end a wait for a row lock when a client is being served, and a nap otherwise. Threads that
    /// have served a client wait in a futex for a lock, the others for something to do. Threads of a
    /// program of unknown model may wait for a lock or for work: that is not judged.
    pub fn part(self, polling: Polling, model: Model) -> Part {
        match self {
            Self::OnCpu => Part::OnCpu,
            Self::ReclaimOnCpu | Self::ReclaimStalled => Part::Reclaim,
            Self::Contended => Part::Contended,
            Self::Throttled => Part::Throttled,
            Self::WakeUp => Part::WakeUp,
            Self::Disk | Self::Filesystem | Self::DirtyThrottled => Part::Disk,
            Self::Fault => Part::Lock,
            Self::Send => Part::Network,
            Self::Futex => match (model, polling) {
                (Model::Loop, _) | (Model::Thread, Polling::Never | Polling::Helper) => Part::Idle,
                (Model::Unknown, _) => Part::Unaccounted,
                _ => Part::Lock,
            },
            Self::PollPeer if polling == Polling::Forever && model == Model::Process => Part::Lock,
            // A parallel worker of PostgreSQL polls for nobody, and reads for its leader.
            Self::AsyncIo if polling == Polling::Forever => Part::Disk,
            Self::AsyncIo if polling == Polling::Never && model == Model::Process => Part::Disk,
            Self::Poll
            | Self::PollPeer
            | Self::Dormant
            | Self::Receive
            | Self::AsyncIo
            | Self::Sleep => Part::Idle,
            Self::Other => Part::Unaccounted,
        }
    }
}

/// How a thread has waited for events so far.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Polling {
    /// Not at all: it serves no client.
    Never,
    /// With a time-out only.
    Timed,
    /// At least once without one, as who serves a client does.
    Forever,
    /// It serves other threads of its database, which wait for it: it reads for them, say.
    Helper,
}

impl Polling {
    /// All of them, in the order in which the probe numbers them.
    pub const ALL: [Self; 4] = [Self::Never, Self::Timed, Self::Forever, Self::Helper];
}

/// A part of a database's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// On a CPU, minor faults included.
    OnCpu,
    /// Waiting for a CPU that others have.
    Contended,
    /// Held back by a CPU limit.
    Throttled,
    /// Waiting until a CPU that slept is awake.
    WakeUp,
    /// Waiting for a disk or the filesystem.
    Disk,
    /// Reclaiming memory, or waiting for it.
    Reclaim,
    /// Waiting for a lock.
    Lock,
    /// Waiting for the network to take data.
    Network,
    /// Waiting for a client or a timer.
    Idle,
    /// Waiting in a way of unknown meaning: active or idle, nobody knows.
    Unaccounted,
}

impl Part {
    /// Whether it is active time. Time of unknown meaning is not: it widens intervals.
    pub fn is_active(self) -> bool {
        !matches!(self, Self::Idle | Self::Unaccounted)
    }

    /// Whether the system call tells it, so that a wait of unknown meaning may have been this. Of
    /// waits for a CPU and for memory the kernel tells, whatever the call.
    pub fn is_told_by_call(self) -> bool {
        matches!(self, Self::Disk | Self::Lock | Self::Network)
    }
}
