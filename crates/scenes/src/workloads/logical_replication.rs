//! A server that clients write to, and another that subscribes to its changes.

use crate::release::{POSTGRES, POSTGRES_17};
use crate::setup::Setup;
use crate::shell::TICK;
use crate::work::{Database, Kind, Work};
use crate::workload::{Prepared, Workload};
use crate::{Postgres, SceneError};
use std::time::{Duration, Instant};

pub(crate) const WORKLOAD: Workload = Workload {
    id: "logical-replication",
    summary: "logical replication: 8 clients write, a subscriber applies the changes",
    releases: &[POSTGRES, POSTGRES_17],
    prepare,
};

const MEBIBYTES: u64 = 150;
const WORK: Work = Work { kind: Kind::Writes, clients: 8 };
const TABLES: &str = "pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history";

/// The longest that copying the tables may take.
const COPIED: Duration = Duration::from_secs(120);

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    let settings = [&[("wal_level", "logical")], setup.settings].concat();
    let setup = &Setup { settings: &settings, ..*setup };
    let publisher = Postgres::start_as(setup)?;
    publisher.fill(MEBIBYTES)?;
    publisher.sql("CREATE PUBLICATION changes FOR ALL TABLES")?;
    let subscriber = Postgres::start_as(setup)?;
    subscriber.pgbench_fill(1, 100)?;
    subscriber.sql(&format!("TRUNCATE {TABLES}"))?;
    let from = publisher.address();
    subscriber
        .sql(&format!("CREATE SUBSCRIPTION changes CONNECTION '{from}' PUBLICATION changes"))?;
    wait_until_copied(&subscriber)?;
    let databases = vec![publisher.watched("publisher"), subscriber.watched("subscriber")];
    let load = move |seconds| publisher.work(WORK, MEBIBYTES, seconds);
    Ok(Prepared::new(databases, load).with(subscriber))
}

fn wait_until_copied(subscriber: &Postgres) -> Result<(), SceneError> {
    let since = Instant::now();
    let copying = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'";
    while subscriber.sql(copying)?.trim() != "0" {
        if since.elapsed() > COPIED {
            return Err(SceneError::Late {
                program: "the subscriber".to_owned(),
                what: "in step with the publisher",
                seconds: COPIED.as_secs(),
                output_end: "tables that are still copied".to_owned(),
            });
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}
