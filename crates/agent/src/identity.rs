//! Which database a series is about: names that outlive a restart, and never a pid.

use untax_core::Database;
use untax_engines::PodNames;

/// The labels of one database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Identity {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub engine: String,
    pub database: String,
}

impl Identity {
    /// Of a database, by its stable name; `names` where it is in a pod.
    pub fn of(database: &Database, names: Option<PodNames>) -> Self {
        let PodNames { namespace, pod, container } = names.unwrap_or_default();
        let (engine, database) = (database.engine.clone(), database.name.clone());
        Self { namespace, pod, container, engine, database }
    }

    /// The values of [`IDENTITY`](crate::metric::IDENTITY), in its order.
    pub fn values(&self) -> [&str; 5] {
        [&self.namespace, &self.pod, &self.container, &self.engine, &self.database]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_a_pod_has_the_labels_of_the_cluster() {
        let names = PodNames {
            namespace: "db".to_owned(),
            pod: "pg-0".to_owned(),
            container: "server".to_owned(),
        };
        let mut database = Database::unknown("postgres", 4012, "not read");
        database.name = "db/pg-0/server".to_owned();
        let labels = Identity::of(&database, Some(names));
        assert_eq!(labels.values(), ["db", "pg-0", "server", "postgres", "db/pg-0/server"]);
    }
}
