//! What is known of an engine.

use serde::{Deserialize, Serialize};

/// What is known of an engine, whichever server of it. The engine's file says it and the snapshot
/// carries it, so that what judges has to know no engine's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Whether it takes huge pages from a pool, and how it is told to.
    pub pool: PoolUse,
    /// What it calls its count of requests; none where it tells no such count.
    pub requests_counter: Option<String>,
    /// The same of its count of connections so far.
    pub connections_counter: Option<String>,
    /// The setting that sizes its memory, where what it maps beside that comes and goes.
    pub memory_setting: Option<String>,
    /// Whether it writes whole pages to its log after a checkpoint.
    pub logs_whole_pages: bool,
    /// Whether its queries put temporary tables into files that have a rule of their own.
    pub has_temporary_tables: bool,
}

/// Whether an engine takes huge pages from a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
