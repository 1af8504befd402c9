//! The list of all engines, and the engine of a program.

use crate::engine::Engine;
use crate::{generic, mongodb, mysql, oracle, postgres, redis};
use untax_core::Database;
use untax_core::database::{ProcessRole, Traits};
use untax_core::io::Role;

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

/// What is known of the engine with this id.
pub fn traits(id: &str) -> Option<Traits> {
    by_id(id).map(|engine| (engine.traits)())
}

/// What a process of a database of this engine is for, by its title; `None` where that does not tell.
pub fn process_role(id: &str, title: &str) -> Option<ProcessRole> {
    (by_id(id)?.process_role)(title)
}

/// Gives databases of runs that were saved by an older version what is known of their engines.
pub fn complete(databases: &mut [Database]) {
    for database in databases.iter_mut().filter(|database| database.traits == Traits::default()) {
        database.traits = traits(&database.engine).unwrap_or_default();
    }
}

/// Beginnings of names of files that tell what is in them, of every engine.
pub fn file_names() -> impl Iterator<Item = &'static (&'static str, Role)> {
    ENGINES.iter().flat_map(|engine| engine.file_names)
}

/// The engine whose program has this base name.
pub(crate) fn by_program(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.programs.iter().any(|program| is_program(name, program)))
}

/// The engine whose program exports these symbols.
pub(crate) fn by_exports(symbols: &[String]) -> Option<&'static Engine> {
    let has = |symbol: &&str| symbols.iter().any(|other| other == symbol);
    ENGINES.iter().find(|engine| !engine.exports.is_empty() && engine.exports.iter().all(has))
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
    fn a_program_of_any_name_is_known_by_all_that_it_exports() {
        let id = |symbols: &[&str]| {
            let symbols: Vec<String> = symbols.iter().map(|s| (*s).to_owned()).collect();
            by_exports(&symbols).map(|engine| engine.id)
        };
        assert_eq!(id(&["PostmasterMain"]), Some("postgres"));
        assert_eq!(id(&["loadServerConfig", "serverCron"]), Some("redis"));
        assert_eq!(id(&["serverCron"]), None);
        assert_eq!(id(&[]), None);
    }

    #[test]
    fn tables_that_are_rebuilt_are_data() {
        let role = |name: &str| file_names().find(|(begins, _)| name.starts_with(begins));
        let temporary = |name: &str| role(name).is_some_and(|(_, role)| *role == Role::Temp);
        assert!(temporary("#sql_4d2_0.MAI") && temporary("#sql-temptable-4d2-1-0.MAI"));
        assert!(!temporary("#sql-ib1091.ibd") && !temporary("#sql-alter-4d2-1.ibd"));
        assert!(file_names().all(|(begins, _)| begins.len() <= 8));
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
