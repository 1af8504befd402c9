//! The experiments without the command line: what their own tests start, kill and measure.
//!
//! `untax-experiments STATE-DIRECTORY < REQUEST` reads a request as JSON and prints the result.

use std::path::PathBuf;
use std::process::ExitCode;
use untax_changes::{Lock, Program, Tree, recover, temporary};
use untax_experiments::pages::{self, PagesBench, Request};
use untax_experiments::{Bench, Machine, Nobody, own_cgroup, run_hidden};
use untax_host::Host;
use untax_trials::Interrupt;

fn main() -> ExitCode {
    if let Some(code) = run_hidden(std::env::args_os()) {
        return code;
    }
    match run() {
        Ok(result) => {
            let written = serde_json::to_writer(std::io::stdout(), &result);
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<PagesBench, Box<dyn std::error::Error>> {
    let state = std::env::args_os().nth(1).map(PathBuf::from).ok_or("which state directory?")?;
    let request: Request = serde_json::from_reader(std::io::stdin())?;
    let lock = Lock::to_bench(&state)?;
    for file in recover(&temporary::folder(&state), &Tree::live())? {
        eprintln!("restored {file}");
    }
    let facts = untax_host::facts::read_all(&Host::live());
    let cgroup = own_cgroup(&facts);
    let bench = Bench {
        program: &Program::this(),
        tree: &Tree::live(),
        state: &state,
        lock: &lock,
        machine: &Machine::of(&facts),
        cgroup: cgroup.as_ref(),
        run: "pages",
        calibration: None,
        interrupt: Interrupt::by_signals()?,
    };
    Ok(pages::run(&request, &bench, &mut Nobody)?)
}
