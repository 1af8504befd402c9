//! What a process of a database waits for.

use serde::{Deserialize, Serialize};

/// For whom a process of a database works, where its title tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessRole {
    /// It waits for requests of a client, whatever it does now.
    Client,
    /// It waits for other processes of its server to give it work, however long that takes.
    FedByPeers,
    /// It does for others of its server what these wait for: it reads for them, or flushes the log.
    Helper,
    /// All else: it writes, launches, sends to standbys.
    Other,
}
