//! What clients ask of a scratch server, the same words for every engine.

use crate::SceneError;
use crate::load::Load;
use crate::setup::{Place, Settings};

/// A kind of server that the lab can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mysql,
    /// Redis.
    Redis,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Mysql, Self::Redis];

    /// As checks name it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Redis => "redis",
        }
    }

    /// What else it is called: by its own name, or by that of one that is like it.
    pub fn alias(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
            Self::Mysql => "mariadb",
            Self::Redis => "valkey",
        }
    }

    /// The engine that has that name, or is called so.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| [engine.id(), engine.alias()].contains(&name))
    }
}

/// What every client does, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads single rows.
    Reads,
    /// Changes single rows, and commits.
    Writes,
    /// Changes a single row, and thinks before it commits, and after.
    Thoughtful,
    /// The same with the row that everybody changes.
    HotRow,
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
    /// Sorts more than it has memory for, which takes files that come and go.
    Spills,
    /// Reads a few hundred KiB at once.
    Fetches,
    /// Adds rows that stay.
    Grows,
    /// Reads single rows, so many requests in flight on each connection where the engine lets them.
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

/// A scratch server, whatever its engine.
pub trait Database {
    /// Its main process; `None` when it was stopped.
    fn pid(&self) -> Option<u32>;

    /// Stops it in good order, starts it in that place with other settings and reads its data into its memory.
    /// Data that were in memory alone are lost.
    fn restart(&mut self, place: Place, settings: Settings) -> Result<(), SceneError>;

    /// Makes about so many MiB of rows.
    fn fill(&self, mebibytes: u64) -> Result<(), SceneError>;

    /// Starts the work, on the rows of that fill.
    fn work(&self, work: Work, mebibytes: u64, seconds: u32) -> Result<Load, SceneError>;
}
