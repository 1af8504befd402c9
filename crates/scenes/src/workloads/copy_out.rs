//! A large table that one client reads as a whole, as a dump does.

use crate::release::{POSTGRES, POSTGRES_18};
use crate::setup::Setup;
use crate::workload::{Prepared, Workload};
use crate::{Postgres, SceneError};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "copy-out",
    summary: "COPY of 300 MB to a client that throws it away",
    releases: &[POSTGRES, POSTGRES_18],
    prepare,
};

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    let server = Postgres::start_as(setup)?;
    server.pgbench_fill(20, 100)?;
    let databases = vec![server.watched("server")];
    Ok(Prepared::new(databases, move |seconds| {
        server.repeat("\\copy pgbench_accounts TO '/dev/null'", seconds)
    }))
}
