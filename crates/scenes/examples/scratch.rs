//! Runs a command while a scratch PostgreSQL serves pgbench, `{pid}` in it being the server's:
//!
//! ```text
//! cargo run -p untax-scenes --example scratch -- untax check --pid {pid}
//! ```
//!
//! `--clients N` and `--seconds N` before the command change the load of 24 clients for ten minutes.

use std::process::{Command, ExitCode};
use untax_scenes::{Pgbench, Postgres, Runtime, SceneError};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str, default: u32| {
        let is_there = words.first().is_some_and(|word| word == name) && words.len() > 1;
        let value = is_there.then(|| words.drain(..2).nth(1)).flatten();
        value.map_or(Some(default), |value| value.parse().ok())
    };
    let (clients, seconds) = (option("--clients", 24), option("--seconds", 600));
    let (Some(clients), Some(seconds)) = (clients, seconds) else {
        eprintln!("--clients and --seconds take a number");
        return ExitCode::from(3);
    };
    let load = Pgbench { clients, seconds, ..Pgbench::default() };
    let Some((program, arguments)) = words.split_first() else {
        eprintln!("name a command to run; {{pid}} in it becomes the server's process id");
        return ExitCode::from(3);
    };
    match while_loaded(&load, program, arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn while_loaded(
    load: &Pgbench,
    program: &str,
    arguments: &[String],
) -> Result<ExitCode, SceneError> {
    let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "1GB")])?;
    postgres.pgbench_fill(20, 30)?;
    let _load = postgres.pgbench(load)?;
    let pid = postgres.pid().unwrap_or_default().to_string();
    let words = arguments.iter().map(|word| word.replace("{pid}", &pid));
    let failed = |source| SceneError::Start { program: program.to_owned(), source };
    let code = Command::new(program).args(words).status().map_err(failed)?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::from(2), ExitCode::from))
}
