//! What a server answers, and the time that it has for it.

use crate::endpoint::Hints;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use untax_core::Reading::{self, Absent, Failed};

/// What a server told of itself. Only settings of the engine's list are in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The version, without the packager's addition.
    pub version: Option<String>,
    /// The product, where the engine has several.
    pub product: Option<String>,
    /// Client connections, this one left out.
    pub connections: Option<u32>,
    /// The engine's count of accesses to cached data.
    pub accesses: Reading<u64>,
    /// When it told these and what follows, microseconds since boot; not known of older captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at_us: Option<u64>,
    /// Other counts that rules read, by the server's own names.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
    /// What makes the next question cheaper.
    #[serde(default)]
    pub hints: Hints,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            version: None,
            product: None,
            connections: None,
            accesses: Absent("the server did not tell".to_owned()),
            told_at_us: None,
            counts: BTreeMap::new(),
            settings: BTreeMap::new(),
            hints: Hints::default(),
        }
    }
}

/// Whoever started this process ends it sooner than this, unless it was killed meanwhile.
const ORPHANED: Duration = Duration::from_secs(30);

/// Runs a conversation with a server to its end, on this one thread.
pub(crate) fn converse<T>(conversation: impl Future<Output = Reading<T>>) -> Reading<T> {
    let limited = async {
        let silent = |_| Failed("the server gave no answer".to_owned());
        tokio::time::timeout(ORPHANED, conversation).await.unwrap_or_else(silent)
    };
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(limited),
        Err(error) => Failed(format!("asking the server: {error}")),
    }
}
