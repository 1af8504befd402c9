//! The child process that asks a server, and what it answers.

use crate::ask::{HINTS, TIMING};
use crate::connect::{Endpoint, Hints};
use crate::engine::{self, Identity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use untax_core::Reading::{self, Absent, Failed, Present};

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
            counts: BTreeMap::new(),
            settings: BTreeMap::new(),
            hints: Hints::default(),
        }
    }
}

/// The child process that asks a server over its socket, so that client libraries, other
/// identities and other namespaces stay out of the main process. Prints the answer as JSON.
///
/// The last three arguments of the process are the engine's id, the pid of the main process, and
/// whom to be: `server` (the OS user that runs it) or `root`; before them may be `timing` and
/// `hints=JSON`. Must be called while the process has a single thread.
pub fn answer_main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().filter_map(|argument| argument.into_string().ok()).collect();
    let [.., engine, pid, identity] = arguments.as_slice() else { return ExitCode::from(3) };
    let asking = engine::by_id(engine).and_then(|engine| engine.asking.as_ref());
    let (Some(asking), Ok(pid), Some(identity)) =
        (asking, pid.parse(), Identity::from_name(identity))
    else {
        return ExitCode::from(3);
    };
    let timing = arguments.iter().any(|argument| argument == TIMING);
    let hints = arguments.iter().find_map(|argument| argument.strip_prefix(HINTS));
    let hints = hints.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let endpoint = Endpoint::open(asking, pid, identity, hints)
        .map(|endpoint| Endpoint { timing, ..endpoint });
    let answer = endpoint.and_then(|endpoint| {
        let mut answer = (asking.ask)(&endpoint);
        if let Present(answer) = &mut answer {
            answer.hints.listening = endpoint.hints.listening;
        }
        answer
    });
    let written = serde_json::to_vec(&answer)
        .map_err(std::io::Error::from)
        .and_then(|json| std::io::stdout().write_all(&json));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) }
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
