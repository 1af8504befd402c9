//! A table half of which is dead rows, and the vacuum that removes them, again and again.

use crate::release::{POSTGRES, POSTGRES_18};
use crate::setup::Setup;
use crate::workload::{Prepared, Workload};
use crate::{Postgres, SceneError};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "vacuum",
    summary: "updates that bloat a table of 150 MB, and its vacuum",
    releases: &[POSTGRES, POSTGRES_18],
    prepare,
};

const SCRIPT: &str =
    "UPDATE pgbench_accounts SET abalance = abalance + 1;\nVACUUM pgbench_accounts;";

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    let server = Postgres::start_as(setup)?;
    server.pgbench_fill(10, 100)?;
    let databases = vec![server.watched("server")];
    Ok(Prepared::new(databases, move |seconds| server.repeat(SCRIPT, seconds)))
}
