//! What an engine is, and the list of them.

use crate::answer::Answer;
use crate::connect::Endpoint;
use crate::database_view::{DatabaseView, Description};
use crate::process_table::{Candidate, Role, Table};
use crate::settings::Values;
use crate::{generic, mongodb, mysql, oracle, postgres, redis};
use untax_core::Reading;

/// A kind of database, and how it is found and read.
pub struct Engine {
    /// Its id, and the name of its file.
    pub id: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Who may read all of it; others see gaps with the reason.
    pub privilege: &'static str,
    /// The oldest kernel on which all of it can be read.
    pub minimum_kernel: &'static str,
    /// What reading it costs the database.
    pub cost: &'static str,
    /// Base names of its program. A version or `.real` after the name is allowed for.
    pub(crate) programs: &'static [&'static str],
    /// What part one process of that program plays.
    pub(crate) role: fn(&Candidate) -> Role,
    /// The processes of the database whose main process is given.
    pub(crate) members: fn(&Table, u32) -> Vec<u32>,
    /// Settings from its files and command line.
    pub(crate) settings: fn(&DatabaseView) -> Values,
    /// All else.
    pub(crate) describe: fn(&DatabaseView) -> Description,
    /// Whether one process holds all the data as its own memory.
    pub(crate) single_process: bool,
    /// How its server is asked over its socket, where that is done.
    pub(crate) asking: Option<Asking>,
}

/// How a server is asked. Runs in a child process of its own.
pub(crate) struct Asking {
    /// Whom it is worth being, in turn.
    pub identities: &'static [Identity],
    /// Whether a Unix socket of this path, on which the server listens, is the one for clients.
    pub is_socket: fn(&str) -> bool,
    /// Whether a Unix socket of this path is likely to be such a server's, whoever listens.
    pub looks_so: fn(&str) -> bool,
    /// Whether a server that has no socket may be asked over TCP on the loopback.
    pub over_tcp: bool,
    /// Asks.
    pub ask: fn(&Endpoint) -> Reading<Answer>,
}

/// The OS user that a server is asked as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The user that runs the server.
    Server,
    /// The superuser.
    Root,
}

impl Identity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Root => "root",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Server, Self::Root].into_iter().find(|identity| identity.name() == name)
    }
}

/// All engines, those that are recognised first; `generic` is for any other program and is only
/// used when a process is named.
pub static ENGINES: &[Engine] = &[
    postgres::ENGINE,
    mysql::ENGINE,
    redis::ENGINE,
    mongodb::ENGINE,
    oracle::ENGINE,
    generic::ENGINE,
];

/// The engine with this id.
pub(crate) fn by_id(id: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.id == id)
}

/// The engine whose program has this base name.
pub(crate) fn by_program(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.programs.iter().any(|program| is_program(name, program)))
}

/// Whether a base name is that of a program: the name itself, with a version (`postgres-15`,
/// `mysqld8.0`), or as packagers rename it when they put a script in its place. Helpers such as
/// `mysqld_safe` or `postgres-exporter` are not.
fn is_program(name: &str, program: &str) -> bool {
    let Some(rest) = name.strip_prefix(program) else { return false };
    let suffix = rest.trim_start_matches(['-', '.', '_']);
    rest.is_empty()
        || suffix.starts_with(|c: char| c.is_ascii_digit())
        || (suffix != rest && ["real", "bin", "orig", "debug"].contains(&suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_names_and_helpers_are_not() {
        let id = |name| by_program(name).map(|engine| engine.id);
        for name in ["postgres", "postmaster", "postgres-15", "postgres.real", "edb-postgres"] {
            assert_eq!(id(name), Some("postgres"), "{name}");
        }
        for name in ["mysqld", "mariadbd", "mysqld-debug", "mysqld8.0"] {
            assert_eq!(id(name), Some("mysql"), "{name}");
        }
        assert_eq!(id("redis-check-rdb"), Some("redis"));
        assert_eq!(id("valkey-server"), Some("redis"));
        assert_eq!(id("mongod"), Some("mongodb"));
        assert_eq!(id("oracle"), Some("oracle"));
        for name in [
            "mysqld_safe",
            "mariadbd-safe",
            "mysqld_multi",
            "postgres-exporter",
            "mongos",
            "postgres_exporter",
            "mongodb_exporter",
            "redis-cli",
            "pg",
            "",
            "oracle-exporter",
        ] {
            assert_eq!(id(name), None, "{name}");
        }
    }

    #[test]
    fn ids_are_unique_and_every_entry_speaks() {
        for (i, engine) in ENGINES.iter().enumerate() {
            assert!(ENGINES[..i].iter().all(|other| other.id != engine.id));
            for text in [engine.summary, engine.privilege, engine.minimum_kernel, engine.cost] {
                assert!(!text.is_empty(), "{}", engine.id);
            }
        }
    }
}
