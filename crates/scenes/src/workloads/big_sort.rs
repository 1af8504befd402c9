//! One client that sorts a table which does not fit into the memory for sorts.

use crate::release::{MARIADB, MYSQL_9, POSTGRES, POSTGRES_18};
use crate::setup::Setup;
use crate::work::{Database, Kind, Work};
use crate::workload::{Prepared, Workload};
use crate::{MariaDb, Postgres, SceneError};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "big-sort",
    summary: "one client sorts 225 MB by a long key, in temporary files",
    releases: &[POSTGRES, POSTGRES_18, MARIADB, MYSQL_9],
    prepare,
};

const MEBIBYTES: u64 = 225;
const WORK: Work = Work { kind: Kind::Sorts, clients: 1 };

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    if setup.is_mysql() {
        let server = MariaDb::start_as(setup)?;
        server.fill(MEBIBYTES)?;
        let databases = vec![server.watched("server")];
        Ok(Prepared::new(databases, move |seconds| server.work(WORK, MEBIBYTES, seconds)))
    } else {
        let server = Postgres::start_as(setup)?;
        server.fill(MEBIBYTES)?;
        let databases = vec![server.watched("server")];
        Ok(Prepared::new(databases, move |seconds| server.work(WORK, MEBIBYTES, seconds)))
    }
}
