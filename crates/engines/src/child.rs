//! The child process that asks a server.

use crate::ask::{HINTS, TIMING};
use crate::endpoint::Endpoint;
use crate::engine::Identity;
use crate::{catalogue, connect};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::Write;
use std::process::ExitCode;
use untax_core::Reading::Present;
use untax_host::Host;

/// By how much this process may grow, bytes; honest answers take some 2 MiB. A server that answers without end ends
/// this process, and not the one that waits for it.
const MOST_GROWTH: u64 = 16 << 20;

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
    let asking = catalogue::by_id(engine).and_then(|engine| engine.asking.as_ref());
    let (Some(asking), Ok(pid), Some(identity)) =
        (asking, pid.parse(), Identity::from_name(identity))
    else {
        return ExitCode::from(3);
    };
    limit_growth();
    let timing = arguments.iter().any(|argument| argument == TIMING);
    let hints = arguments.iter().find_map(|argument| argument.strip_prefix(HINTS));
    let hints = hints.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let endpoint =
        connect::open(asking, pid, identity, hints).map(|endpoint| Endpoint { timing, ..endpoint });
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

/// Lets this process grow so far and no further. Where that cannot be, the deadline is what ends it.
fn limit_growth() {
    let pages = Host::live().text("/proc/self/statm").into_value();
    let data = pages.and_then(|text| text.split_whitespace().nth(5)?.parse::<u64>().ok());
    let Some(data) = data else { return };
    let most = Some(data * rustix::param::page_size() as u64 + MOST_GROWTH);
    let _ = setrlimit(Resource::Data, Rlimit { current: most, maximum: most });
}
