//! The work that clients give a scratch server, the same for every engine.

use crate::SceneError;
use crate::load::Load;
use crate::setup::{Runtime, Settings};

/// What each client does, in a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads single rows.
    Reads,
    /// Changes single rows, and commits.
    Writes,
    /// Changes a single row, with think time before the commit and after it.
    WithThinkTime,
    /// The same with one row that all clients change.
    HotRow,
    /// Reads a single row, and thinks for 20 ms.
    Thinks,
    /// Reads single rows, so many a second of all clients together, however long each takes. PostgreSQL alone.
    Paced(u32),
    /// Reads a single row over a connection made for it.
    Reconnect,
    /// Reads rows one by one: 200 of PostgreSQL, 8 of MariaDB; of Redis 16 at a time.
    Batches,
    /// The same over a connection made for them.
    Sessions,
    /// Reads the whole table, more than its own memory holds.
    Scans,
    /// Sorts the whole table, which takes a temporary file; of Redis a list.
    Sorts,
    /// Reads some hundred rows one by one, and sorts a part of the table.
    Reports,
    /// Sorts more than fits into memory, which makes and deletes temporary files.
    Spills,
    /// Reads a few hundred KiB at once.
    Fetches,
    /// Inserts rows.
    Grows,
    /// Reads single rows, with so many requests in flight on each connection where the engine allows it.
    Pipelined(u32),
}

/// The work of all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// What each does.
    pub kind: Kind,
    /// How many there are.
    pub clients: u32,
}

/// A server that can be stopped.
pub trait Stop {
    /// Stops it in good order; its files stay until it is dropped.
    fn stop(&mut self);
}

/// A scratch server, whatever its engine.
pub trait Database: Stop {
    /// Its main process; `None` when it was stopped.
    fn pid(&self) -> Option<u32>;

    /// Stops it in good order, starts it there with other settings and reads its data into its memory.
    /// Data that were only in memory are lost.
    fn restart(&mut self, runtime: Runtime, settings: Settings) -> Result<(), SceneError>;

    /// Makes about so many MiB of rows.
    fn fill(&self, mebibytes: u64) -> Result<(), SceneError>;

    /// Starts the work, on the rows of that fill.
    fn work(&self, work: Work, mebibytes: u64, seconds: u32) -> Result<Load, SceneError>;
}
