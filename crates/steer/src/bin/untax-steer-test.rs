//! The program that tests kill: `untax-steer-test STATE PID CPUS…` gives the threads of a process these CPUs by
//! turns.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use untax_changes::guard;
use untax_core::cpus::Cpus;
use untax_steer::stress;

/// Between two changes.
const PAUSE: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    if let Some(code) = guard::main(std::env::args_os()) {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [state, pid, masks @ ..] = &arguments[..] else { return usage() };
    let masks: Result<Vec<Cpus>, _> = masks.iter().map(|list| list.parse()).collect();
    let (Ok(pid), Ok(masks)) = (pid.parse(), masks) else { return usage() };
    match stress::flip(Path::new(state), pid, &masks, PAUSE) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: untax-steer-test STATE PID CPUS…");
    ExitCode::from(3)
}
