//! The servers that scenes can start: of each engine the one that this machine's suite has, and
//! those that `scripts/engines.sh` unpacks.

use crate::engine::Engine;

/// A server that scenes can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Release {
    /// Its id on a command line and in results.
    pub id: &'static str,
    /// Another name for it.
    pub alias: Option<&'static str>,
    /// Its engine.
    pub engine: Engine,
    /// Whether its programs are unpacked into a root of their own rather than installed.
    pub is_unpacked: bool,
    /// Whether it is MySQL itself, which is set up in another way than MariaDB.
    pub(crate) is_mysql: bool,
}

const INSTALLED: Release =
    Release { id: "", alias: None, engine: Engine::Postgres, is_unpacked: false, is_mysql: false };
const UNPACKED: Release = Release { is_unpacked: true, ..INSTALLED };

/// The installed PostgreSQL.
pub const POSTGRES: Release =
    Release { id: "postgres", alias: Some("postgresql"), engine: Engine::Postgres, ..INSTALLED };
/// The installed MariaDB.
pub const MARIADB: Release =
    Release { id: "mysql", alias: Some("mariadb"), engine: Engine::Mysql, ..INSTALLED };
/// The installed Redis.
pub const REDIS: Release = Release { id: "redis", engine: Engine::Redis, ..INSTALLED };
/// PostgreSQL 17.
pub const POSTGRES_17: Release = Release { id: "postgres17", engine: Engine::Postgres, ..UNPACKED };
/// PostgreSQL 18.
pub const POSTGRES_18: Release = Release { id: "postgres18", engine: Engine::Postgres, ..UNPACKED };
/// MySQL 9.
pub const MYSQL_9: Release =
    Release { id: "mysql9", engine: Engine::Mysql, is_mysql: true, ..UNPACKED };
/// MariaDB 11.
pub const MARIADB_11: Release = Release { id: "mariadb11", engine: Engine::Mysql, ..UNPACKED };
/// Valkey.
pub const VALKEY: Release = Release { id: "valkey", engine: Engine::Redis, ..UNPACKED };

/// Every server, those that are installed first.
pub static RELEASES: &[Release] =
    &[POSTGRES, MARIADB, REDIS, POSTGRES_17, POSTGRES_18, MYSQL_9, MARIADB_11, VALKEY];

impl Release {
    /// The server with that id or other name.
    pub fn find(name: &str) -> Option<Self> {
        RELEASES.iter().copied().find(|release| release.id == name || release.alias == Some(name))
    }

    /// The installed server of an engine.
    pub fn installed(engine: Engine) -> Self {
        match engine {
            Engine::Postgres => POSTGRES,
            Engine::Mysql => MARIADB,
            Engine::Redis => REDIS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_engine_has_an_installed_server() {
        let names = |release: &Release| [Some(release.id), release.alias];
        let mut all: Vec<&str> = RELEASES.iter().flat_map(names).flatten().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for name in all {
            assert!(Release::find(name).is_some(), "{name}");
        }
        for engine in Engine::ALL {
            let release = Release::installed(engine);
            assert!(release.engine == engine && !release.is_unpacked, "{}", release.id);
            assert_eq!(release.id, engine.id());
        }
    }
}
