//! `sysbench oltp_read_write`: transactions of 14 reads and 4 writes.

use crate::load::Sysbench;
use crate::release::{MARIADB, MYSQL_9, POSTGRES, POSTGRES_18};
use crate::setup::Setup;
use crate::workload::{Prepared, Workload};
use crate::{MariaDb, Postgres, SceneError};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "read-write",
    summary: "sysbench oltp_read_write, 8 threads",
    releases: &[POSTGRES, POSTGRES_18, MARIADB, MYSQL_9],
    prepare,
};

const SCRIPT: &str = "oltp_read_write";
const ROWS: u64 = 400_000;

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    let load = |seconds| Sysbench { threads: 8, seconds, rows: ROWS };
    if setup.is_mysql() {
        let server = MariaDb::start_as(setup)?;
        server.sysbench_fill(ROWS)?;
        let databases = vec![server.watched("server")];
        Ok(Prepared::new(databases, move |seconds| server.sysbench_script(&load(seconds), SCRIPT)))
    } else {
        let server = Postgres::start_as(setup)?;
        server.sysbench_fill(SCRIPT, ROWS)?;
        let databases = vec![server.watched("server")];
        Ok(Prepared::new(databases, move |seconds| server.sysbench(&load(seconds), SCRIPT)))
    }
}
