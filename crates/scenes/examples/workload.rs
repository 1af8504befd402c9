//! Runs a command beside a workload, `{pid}` in it being the first server's:
//!
//! ```text
//! cargo run -p untax-scenes --example workload -- tpcc postgres18 untax check --pid {pid}
//! ```

use std::process::{Command, ExitCode};
use std::time::Duration;
use untax_scenes::{Release, SceneError, Setup, WORKLOADS, Workload};

/// Longer than any command that looks at it.
const SECONDS: u32 = 600;

/// Until clients are connected, and have read the catalogue.
const WARM_UP: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let chosen = words.first().zip(words.get(1)).and_then(|(workload, release)| {
        let workload = WORKLOADS.iter().find(|known| known.id == workload)?;
        Some((workload, Release::find(release)?))
    });
    let Some(((workload, release), [program, arguments @ ..])) = chosen.zip(words.get(2..)) else {
        let ids: Vec<&str> = WORKLOADS.iter().map(|workload| workload.id).collect();
        eprintln!("name a workload ({}), a server, and a command to run", ids.join(", "));
        return ExitCode::from(3);
    };
    match beside(workload, release, program, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn beside(
    workload: &Workload,
    release: Release,
    program: &str,
    arguments: &[String],
) -> Result<(), SceneError> {
    let setup = Setup { release: Some(release), durable: true, ..Setup::default() };
    let prepared = (workload.prepare)(&setup)?;
    for database in &prepared.databases {
        eprintln!("{}: {} in {}", database.role, database.pid, database.data_directory);
    }
    let _load = prepared.load(SECONDS)?;
    std::thread::sleep(WARM_UP);
    let pid = prepared.databases.first().map_or_else(String::new, |first| first.pid.to_string());
    let words = arguments.iter().map(|word| word.replace("{pid}", &pid));
    let failed = |source| SceneError::Start { program: program.to_owned(), source };
    Command::new(program).args(words).status().map(drop).map_err(failed)
}
