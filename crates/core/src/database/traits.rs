//! What is known of an engine.

use serde::{Deserialize, Serialize};

/// What is known of an engine, whichever server of it. The engine's file says it and the snapshot
/// carries it, so that what judges has to know no engine's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Traits {
    /// Whether it takes huge pages from a pool, and how it is told to.
    pub pool: PoolUse,
    /// What it calls its count of requests; none where it tells no such count.
    pub requests_counter: Option<String>,
    /// By how much a count that it tells may be late, ms: each of its processes adds up its own and hands
    /// them over from time to time.
    #[serde(default)]
    pub counts_late_ms: u32,
    /// The same of its count of connections so far.
    pub connections_counter: Option<String>,
    /// The setting that sizes its memory, where what it maps beside that comes and goes.
    pub memory_setting: Option<String>,
    /// What it wants of transparent huge pages, from one version on after the other; none where it is not
    /// known to want anything.
    pub thp: Vec<ThpWish>,
    /// How its own settings keep it off them, and from which version on: earlier ones end at a
    /// directive that they do not know.
    pub thp_off: Option<(u32, u32, String)>,
    /// Whether it writes whole pages to its log after a checkpoint.
    pub logs_whole_pages: bool,
    /// Whether its queries put temporary tables into files that have a rule of their own.
    pub has_temporary_tables: bool,
}

/// What an engine wants of transparent huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThpWish {
    /// From this version on, major and minor.
    pub since: (u32, u32),
    /// The mode: `always`, `madvise` or `never`.
    pub mode: String,
    /// Whether it suffers in the mode always.
    pub suffers: bool,
    /// What it wants the kernel to do when no huge page is free (`defrag`); none where it does not care.
    #[serde(default)]
    pub defrag: Option<String>,
    /// How many pages that hold nothing it lets khugepaged fill a huge page up with (`max_ptes_none`).
    #[serde(default)]
    pub max_ptes_none: Option<u64>,
}

impl ThpWish {
    /// The wish of every version.
    pub fn of_all(mode: &str, suffers: bool) -> Vec<Self> {
        vec![Self::since((0, 0), mode, suffers)]
    }

    /// The wish from one version on, about the mode alone.
    pub fn since(since: (u32, u32), mode: &str, suffers: bool) -> Self {
        Self { since, mode: mode.to_owned(), suffers, defrag: None, max_ptes_none: None }
    }
}

/// Whether an engine takes huge pages from a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolUse {
    /// Not known, as of any other program.
    #[default]
    Unknown,
    /// It takes none.
    Never,
    /// When this is set.
    Setting(String),
}
