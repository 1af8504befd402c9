//! `untax lab`.

pub mod list;
pub mod matrix;
pub mod run;
mod trial;

use clap::ValueEnum;

/// An engine as a word of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// PostgreSQL
    Postgres,
    /// MariaDB
    Mysql,
    /// Redis
    Redis,
}

impl From<Engine> for untax_lab::Engine {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Postgres => Self::Postgres,
            Engine::Mysql => Self::Mysql,
            Engine::Redis => Self::Redis,
        }
    }
}

/// A dose as a word of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dose {
    /// So much that nothing else counts beside it
    Strong,
    /// About as much as platforms take
    Mild,
}

impl From<Dose> for untax_lab::Dose {
    fn from(dose: Dose) -> Self {
        match dose {
            Dose::Strong => Self::Strong,
            Dose::Mild => Self::Mild,
        }
    }
}

/// The cause of that id, or all there are.
fn cause(id: &str) -> Result<&'static untax_lab::Cause, String> {
    untax_lab::Cause::find(id).ok_or_else(|| {
        let ids: Vec<&str> = untax_lab::CAUSES.iter().map(|cause| cause.id).collect();
        format!("there is no cause {id}; there are: {}", ids.join(", "))
    })
}
