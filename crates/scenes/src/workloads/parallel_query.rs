//! One client whose queries several workers answer together.

use crate::release::{POSTGRES, POSTGRES_17, POSTGRES_18};
use crate::setup::Setup;
use crate::workload::{Prepared, Workload};
use crate::{Postgres, SceneError};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "parallel-query",
    summary: "one client counts and joins by parallel workers",
    releases: &[POSTGRES, POSTGRES_17, POSTGRES_18],
    prepare,
};

/// A leader and two workers, whatever the planner thinks of so small a table.
const SCRIPT: &str = "SET max_parallel_workers_per_gather = 2;\n\
    SET parallel_setup_cost = 0;\n\
    SELECT bid, count(*), avg(abalance), max(length(filler || aid)) FROM pgbench_accounts GROUP BY bid;\n\
    SELECT count(*) FROM pgbench_accounts a JOIN pgbench_accounts b USING (aid) WHERE a.bid <> b.bid;\n";

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    let server = Postgres::start_as(setup)?;
    server.pgbench_fill(20, 100)?;
    server.sql("VACUUM ANALYZE pgbench_accounts")?;
    let databases = vec![server.watched("server")];
    Ok(Prepared::new(databases, move |seconds| {
        server.scripts(&[("parallel", SCRIPT, 1)], 1, seconds)
    }))
}
