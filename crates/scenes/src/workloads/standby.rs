//! A server that clients write to, and a standby that applies its log.

use crate::release::{POSTGRES, POSTGRES_17};
use crate::setup::Setup;
use crate::work::{Database, Kind, Work};
use crate::workload::{Prepared, Workload};
use crate::{Postgres, SceneError};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "standby",
    summary: "streaming replication: 8 clients write, a standby applies the log",
    releases: &[POSTGRES, POSTGRES_17],
    prepare,
};

const MEBIBYTES: u64 = 150;
const WORK: Work = Work { kind: Kind::Writes, clients: 8 };

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    let primary = Postgres::start_as(setup)?;
    primary.fill(MEBIBYTES)?;
    let standby = primary.standby(setup)?;
    let databases = vec![primary.watched("primary"), standby.watched("standby")];
    let load = move |seconds| primary.work(WORK, MEBIBYTES, seconds);
    Ok(Prepared::new(databases, load).with(standby))
}
