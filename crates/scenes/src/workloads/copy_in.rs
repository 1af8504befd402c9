//! A large table that one client loads from a file, again and again.

use crate::release::{MARIADB, MYSQL_9, POSTGRES, POSTGRES_18};
use crate::setup::Setup;
use crate::workload::{Prepared, Workload};
use crate::{MariaDb, Postgres, SceneError};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "copy-in",
    summary: "COPY (LOAD DATA) of 80 MB into a table with a primary key",
    releases: &[POSTGRES, POSTGRES_18, MARIADB, MYSQL_9],
    prepare,
};

/// As `COPY` and `LOAD DATA` read it: the number, and 150 bytes that are not all alike.
fn rows() -> String {
    let row = |number: u32| format!("{number}\t{:0>150}\n", number.wrapping_mul(2_654_435_761));
    (1..=500_000).map(row).collect()
}

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    if setup.is_mysql() {
        let setting = [("local-infile", "1")];
        let settings = [&setting, setup.settings].concat();
        let server = MariaDb::start_as(&Setup { settings: &settings, ..*setup })?;
        server.sql("CREATE DATABASE sbtest")?;
        let file = server.keep("rows", &rows())?;
        let script = format!(
            "DROP TABLE IF EXISTS big; CREATE TABLE big (id int PRIMARY KEY, filler text);\
             LOAD DATA LOCAL INFILE '{file}' INTO TABLE big"
        );
        let databases = vec![server.watched("server")];
        Ok(Prepared::new(databases, move |seconds| server.repeat(&script, seconds)))
    } else {
        let server = Postgres::start_as(setup)?;
        server.sql("CREATE TABLE big (id int PRIMARY KEY, filler text)")?;
        let file = server.keep("rows", &rows())?;
        let script = format!("TRUNCATE big;\n\\copy big FROM '{file}'");
        let databases = vec![server.watched("server")];
        Ok(Prepared::new(databases, move |seconds| server.repeat(&script, seconds)))
    }
}
