//! The parts of a request's time.

/// The part of a request's time in which its thread waits for its client.
pub const CLIENT: &str = "client";

/// The parts of a request's time, in the order of output: what the ledger charges each second to, waits for
/// other threads included, and beside it the time between two requests.
pub const PARTS: [(&str, &str); 12] = [
    ("cpu", "computing"),
    ("run-queue", "waiting for a CPU"),
    ("throttled", "held back by a CPU limit"),
    ("wake-up", "waiting for a CPU to wake up"),
    ("disk", "waiting for a disk"),
    ("kernel", "waiting in the kernel: journal, file locks"),
    ("dirty-pages", "held back for dirty pages"),
    ("memory", "freeing memory"),
    ("network", "waiting until the network takes data"),
    ("idle", "behind a thread that waits for its client"),
    ("unresolved", "in waits of unknown meaning"),
    (CLIENT, "waiting for the client"),
];

/// What a part is, in words; its id where it is not listed.
pub fn part_in_words(part: &str) -> &str {
    PARTS.iter().find(|(id, _)| *id == part).map_or(part, |(_, words)| words)
}
