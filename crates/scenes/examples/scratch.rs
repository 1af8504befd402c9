//! Runs a command while a scratch PostgreSQL serves pgbench, `{pid}` in it being the server's:
//!
//! ```text
//! cargo run -p untax-scenes --example scratch -- untax check --pid {pid}
//! ```

use std::process::{Command, ExitCode};
use untax_scenes::{Pgbench, Postgres, Runtime, SceneError};

fn main() -> ExitCode {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, arguments)) = command.split_first() else {
        eprintln!("name a command to run; {{pid}} in it becomes the server's process id");
        return ExitCode::from(3);
    };
    match while_loaded(program, arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn while_loaded(program: &str, arguments: &[String]) -> Result<ExitCode, SceneError> {
    let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "1GB")])?;
    postgres.pgbench_fill(20, 30)?;
    let _load = postgres.pgbench(&Pgbench { clients: 24, seconds: 600, ..Pgbench::default() })?;
    let pid = postgres.pid().unwrap_or_default().to_string();
    let words = arguments.iter().map(|word| word.replace("{pid}", &pid));
    let failed = |source| SceneError::Start { program: program.to_owned(), source };
    let code = Command::new(program).args(words).status().map_err(failed)?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::from(2), ExitCode::from))
}
