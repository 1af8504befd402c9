//! What a bench of page sizes can be asked to do.

use crate::memory::Huge;
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use untax_core::Bytes;

/// The pages that a table lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Page {
    /// Base pages of 4 KiB.
    #[serde(rename = "4k")]
    Small,
    /// Transparent huge pages on shared memory.
    #[serde(rename = "thp")]
    Transparent,
    /// Pages of 2 MiB from a pool.
    #[serde(rename = "2m")]
    Huge,
    /// Pages of 1 GiB from a pool.
    #[serde(rename = "1g")]
    Gigantic,
}

impl Page {
    /// All of them, in the order in which results list them.
    pub const ALL: [Self; 4] = [Self::Small, Self::Transparent, Self::Huge, Self::Gigantic];

    /// Its name on the command line and in results.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Small => "4k",
            Self::Transparent => "thp",
            Self::Huge => "2m",
            Self::Gigantic => "1g",
        }
    }

    /// The page of a name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|page| page.id() == id)
    }

    /// The size that one entry of the TLB is hoped to cover.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Small => Bytes::KIB_4,
            Self::Transparent | Self::Huge => Bytes::MIB_2,
            Self::Gigantic => Bytes::GIB_1,
        }
    }

    /// The pool that the pages come from, as the kernel names its directory.
    pub const fn pool(self) -> Option<Bytes> {
        match self {
            Self::Small | Self::Transparent => None,
            Self::Huge | Self::Gigantic => Some(self.bytes()),
        }
    }

    /// The flags of the file that holds a table.
    pub(crate) fn memfd_flags(self) -> MemfdFlags {
        let base = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        match self {
            Self::Small | Self::Transparent => base,
            Self::Huge => base | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
            Self::Gigantic => base | MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB,
        }
    }

    /// The advice that its mappings are given.
    pub(crate) const fn advice(self) -> Huge {
        match self {
            Self::Small => Huge::Refused,
            Self::Transparent => Huge::Wanted,
            Self::Huge | Self::Gigantic => Huge::Pool,
        }
    }

    /// Whether every reader needs page tables of 8 bytes per 4 KiB. Transparent huge pages may
    /// be split or never come, so they are planned for as small ones.
    pub(crate) const fn may_need_small_tables(self) -> bool {
        matches!(self, Self::Small | Self::Transparent)
    }
}

/// How a row is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Through a hash index in the same memory, as a database would.
    Hash,
    /// By row number: the physical floor.
    Direct,
}

impl Access {
    /// Its name on the command line and in results.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Direct => "direct",
        }
    }
}

/// What a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// A process with page tables of its own, as in PostgreSQL and Oracle.
    Process,
    /// A thread; all share one set of page tables, as in MySQL and MongoDB.
    Thread,
}

impl Model {
    /// Its name on the command line and in results.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Thread => "thread",
        }
    }
}

/// One bench to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Rows of every table; `None`: as many of each width as fit a quarter of the available
    /// memory, and `most_table`.
    pub rows: Option<u64>,
    /// The most memory that a table gets whose rows were not asked for.
    pub most_table: Bytes,
    /// Widths of rows, one table each.
    pub row_bytes: Vec<u64>,
    /// Pages to compare.
    pub pages: Vec<Page>,
    /// Numbers of readers at once.
    pub connections: Vec<u32>,
    /// What a connection is.
    pub model: Model,
    /// How a row is found.
    pub access: Access,
    /// Trials of every cell.
    pub trials: u32,
    /// Length of one trial.
    pub trial: Duration,
    /// What keys and order are drawn from.
    pub seed: u64,
}

impl Request {
    /// The largest number of readers.
    pub(crate) fn most_connections(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1)
    }
}
