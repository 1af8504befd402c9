//! What waits in system calls mean.

use untax_core::activity::Doing;

/// What a wait in a system call means. Every call of the kernel's tables is of one class, and a call
/// that is in no table is [`Unknown`](Class::Unknown).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Waits for a lock, or wakes a thread that does.
    Futex,
    /// Waits for a message or a connection.
    Receive,
    /// Waits until the network takes data.
    Send,
    /// Waits for the network, and sends nothing to a thread that waits for a client.
    Connect,
    /// Waits for events.
    Poll,
    /// Waits for asynchronous I/O.
    Async,
    /// Waits for a timer, a signal or a child.
    Sleep,
    /// Sends a signal, as threads do that wake others of their database.
    Signal,
    /// Changes or frees mappings: waits for the address space.
    Memory,
    /// Waits for a file or a filesystem.
    File,
    /// Waits for nothing of its own: for a page of memory, or a lock of the kernel.
    Immediate,
    /// Waits for whatever its arguments mean: a device, a pipe, a child, another kernel subsystem.
    Unknown,
}

impl Class {
    /// What a thread does that sleeps in it, ready for a signal; and what it does when no signal can wake
    /// it, and no block device is waited for either.
    pub(super) fn doings(self) -> (Doing, Doing) {
        match self {
            Self::Futex => (Doing::Futex, Doing::Fault),
            Self::Receive => (Doing::Receive, Doing::Filesystem),
            Self::Send => (Doing::Send, Doing::Filesystem),
            Self::Connect => (Doing::Send, Doing::Fault),
            Self::Poll => (Doing::Poll, Doing::Fault),
            Self::Async => (Doing::AsyncIo, Doing::Filesystem),
            Self::Sleep => (Doing::Sleep, Doing::Fault),
            Self::Memory => (Doing::Fault, Doing::Fault),
            Self::File => (Doing::Filesystem, Doing::Filesystem),
            // Such a call does not sleep: if it does, nobody knows what for.
            Self::Signal | Self::Immediate => (Doing::Other, Doing::Fault),
            Self::Unknown => (Doing::Other, Doing::Other),
        }
    }
}
