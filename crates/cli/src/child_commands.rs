//! Parts that run as children of this program: they are started by it alone, and no user sees
//! them in the help.

use std::process::ExitCode;

/// Runs a hidden part if this process was started as one.
pub fn run() -> Option<ExitCode> {
    if let Some(code) = untax_experiments::run_hidden(std::env::args_os()) {
        return Some(code);
    }
    match std::env::args_os().nth(1)?.to_str()? {
        "__ask" => Some(untax_engines::answer_main()),
        _ => None,
    }
}
