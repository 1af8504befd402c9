//! Which database a series is about: names that outlive a restart, and never a pid.

use untax_core::Database;

/// The labels of one database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Identity {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub engine: String,
    pub database: String,
}

/// Where a pod's container is known by names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodNames {
    pub namespace: String,
    pub pod: String,
    /// Empty where a pod has several containers and the runtime does not say which this is.
    pub container: String,
}

impl Identity {
    /// Of a database in a pod: `NAMESPACE/POD/CONTAINER`, or `NAMESPACE/POD/ENGINE` where the container's
    /// name is not known. Of any other: `ENGINE@PLACE`, its port or the directory of its socket or data.
    pub fn of(database: &Database, names: Option<PodNames>, port: Option<u16>) -> Self {
        let engine = database.engine.clone();
        let Some(PodNames { namespace, pod, container }) = names else {
            let name = format!("{engine}@{}", place(database, port));
            return Self { engine, database: name, ..Self::default() };
        };
        let last = if container.is_empty() { &engine } else { &container };
        let name = format!("{namespace}/{pod}/{last}");
        Self { namespace, pod, container, engine, database: name }
    }

    /// The values of [`IDENTITY`](crate::metric::IDENTITY), in its order.
    pub fn values(&self) -> [&str; 5] {
        [&self.namespace, &self.pod, &self.container, &self.engine, &self.database]
    }
}

/// The part of a name that tells servers of one engine apart and survives restarts: port, data directory, else
/// the container's id, else `unknown`.
fn place(database: &Database, port: Option<u16>) -> String {
    let told = port.map(|port| port.to_string());
    let directory = || database.data_directory.value().cloned();
    let container = || database.container.as_ref().map(|container| container.id.clone());
    told.or_else(directory).or_else(container).unwrap_or_else(|| "unknown".to_owned())
}

/// Gives each of several databases a name of its own: those that share one are numbered from the second on,
/// in the order of their pids.
pub(crate) fn tell_apart(identities: &mut [Identity]) {
    for place in 1..identities.len() {
        let (before, after) = identities.split_at_mut(place);
        let own = after[0].database.clone();
        let taken = |name: &str| before.iter().any(|other| other.database == name);
        let mut number = 2;
        while taken(&after[0].database) {
            after[0].database = format!("{own}#{number}");
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading;

    fn postgres() -> Database {
        Database::unknown("postgres", 4012, "not read")
    }

    #[test]
    fn a_name_never_holds_a_pid() {
        let mut database = postgres();
        let name = |database: &Database, port| Identity::of(database, None, port).database;
        assert_eq!(name(&database, Some(5432)), "postgres@5432");
        assert_eq!(name(&database, None), "postgres@unknown");
        database.data_directory = Reading::Present("/var/lib/pg".to_owned());
        assert_eq!(name(&database, None), "postgres@/var/lib/pg");
    }

    #[test]
    fn a_database_of_a_pod_has_the_names_of_the_cluster() {
        let names = |container: &str| PodNames {
            namespace: "db".to_owned(),
            pod: "pg-0".to_owned(),
            container: container.to_owned(),
        };
        let of = |container| Identity::of(&postgres(), Some(names(container)), Some(5432));
        assert_eq!(of("server").database, "db/pg-0/server");
        assert_eq!(of("").database, "db/pg-0/postgres");
        assert_eq!(of("server").values(), ["db", "pg-0", "server", "postgres", "db/pg-0/server"]);
    }

    #[test]
    fn two_of_one_name_are_told_apart() {
        let of = |port| Identity::of(&postgres(), None, port);
        let mut all = [of(Some(1)), of(Some(1)), of(None), of(Some(1))];
        tell_apart(&mut all);
        let names = all.map(|identity| identity.database);
        assert_eq!(names, ["postgres@1", "postgres@1#2", "postgres@unknown", "postgres@1#3"]);
    }
}
