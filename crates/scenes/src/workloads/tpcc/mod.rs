//! TPC-C with and without think time: of MySQL and MariaDB by `go-tpc`, of PostgreSQL by scripts of
//! pgbench that are made like its five transactions, because the published `go-tpc` speaks to MySQL
//! alone.

use crate::mariadb::VISITOR;
use crate::release::{MARIADB, MYSQL_9, POSTGRES, POSTGRES_18};
use crate::root::cache;
use crate::setup::Setup;
use crate::workload::{Prepared, Workload};
use crate::{MariaDb, Network, Postgres, SceneError};
use std::path::PathBuf;

pub(crate) const WORKLOAD: Workload = Workload {
    id: "tpcc",
    summary: "TPC-C of 2 warehouses, 8 terminals without think time",
    releases: &[POSTGRES, POSTGRES_18, MARIADB, MYSQL_9],
    prepare: |setup| prepare(setup, Terminals { number: 8, think: false }),
};

pub(crate) const WITH_THINK_TIME: Workload = Workload {
    id: "tpcc-think-time",
    summary: "TPC-C of 2 warehouses, 40 terminals with think time",
    releases: &[POSTGRES, POSTGRES_18, MARIADB, MYSQL_9],
    prepare: |setup| prepare(setup, Terminals { number: 40, think: true }),
};

const WAREHOUSES: u32 = 2;
const SCHEMA: &str = include_str!("schema.sql");

/// The five transactions, and how many of a hundred each is (TPC-C 5.11, 5.2.3).
const TRANSACTIONS: [(&str, &str, u32); 5] = [
    ("new_order", include_str!("new_order.sql"), 45),
    ("payment", include_str!("payment.sql"), 43),
    ("order_status", include_str!("order_status.sql"), 4),
    ("delivery", include_str!("delivery.sql"), 4),
    ("stock_level", include_str!("stock_level.sql"), 4),
];

/// What a terminal of PostgreSQL waits after a transaction: a hundredth of what TPC-C asks for, which takes
/// thousands of terminals to load a server.
const THINK_TIME: &str = "\\set think random(50, 250)\n\\sleep :think ms\n";

#[derive(Clone, Copy)]
struct Terminals {
    number: u32,
    think: bool,
}

/// So many terminals without think time.
pub(crate) fn with_terminals(setup: &Setup, number: u32) -> Result<Prepared, SceneError> {
    prepare(setup, Terminals { number, think: false })
}

fn prepare(setup: &Setup, terminals: Terminals) -> Result<Prepared, SceneError> {
    let by = if setup.is_mysql() { by_go_tpc } else { by_scripts };
    by(setup, terminals)
}

fn by_scripts(setup: &Setup, terminals: Terminals) -> Result<Prepared, SceneError> {
    let server = Postgres::start_as(setup)?;
    server.script(&SCHEMA.replace(":warehouses", &WAREHOUSES.to_string()))?;
    let think = if terminals.think { THINK_TIME } else { "" };
    let text = |text: &str| text.replace("WAREHOUSES", &WAREHOUSES.to_string()) + think;
    let texts = TRANSACTIONS.map(|(name, sql, weight)| (name, text(sql), weight));
    let databases = vec![server.watched("server")];
    Ok(Prepared::new(databases, move |seconds| {
        let scripts = texts.each_ref().map(|(name, text, weight)| (*name, text.as_str(), *weight));
        server.scripts(&scripts, terminals.number, seconds)
    }))
}

/// The program, below the directory of fetched things.
pub(crate) fn go_tpc() -> Result<PathBuf, SceneError> {
    let folder = cache()?;
    let program = folder.join("loads/go-tpc");
    if program.is_file() {
        return Ok(program);
    }
    Err(SceneError::NotBuilt { program: "go-tpc", cache: folder.display().to_string() })
}

fn by_go_tpc(setup: &Setup, terminals: Terminals) -> Result<Prepared, SceneError> {
    let program = go_tpc()?;
    let network = Network::make()?;
    let server = MariaDb::start_as(&Setup { network: Some(&network), ..*setup })?;
    server.sql("CREATE DATABASE IF NOT EXISTS sbtest")?;
    let address = [
        format!("--port={}", server.port()),
        format!("--user={VISITOR}"),
        "--db=sbtest".to_owned(),
    ];
    let go_tpc = move |what: &str, more: &[String]| {
        let own = [program.to_string_lossy().into_owned(), "tpcc".to_owned(), what.to_owned()];
        let warehouses = [format!("--warehouses={WAREHOUSES}")];
        [&own[..], &warehouses, &address, more].concat()
    };
    // Each of its many small inserts is a transaction. Its checks after that take MariaDB minutes: they have
    // correlated subqueries.
    let flush =
        |each: u32| server.sql(&format!("SET GLOBAL innodb_flush_log_at_trx_commit = {each}"));
    flush(0)?;
    server.run(&go_tpc("prepare", &["--threads=2", "--no-check"].map(str::to_owned)))?;
    flush(1)?;
    let databases = vec![server.watched("server")];
    let load = move |seconds| {
        let _there = &network;
        let mut more =
            vec![format!("--threads={}", terminals.number), format!("--time={seconds}s")];
        more.push("--interval=1s".to_owned());
        more.extend(terminals.think.then(|| "--wait".to_owned()));
        server.load(&go_tpc("run", &more), seconds, new_orders_per_minute)
    };
    Ok(Prepared::new(databases, load))
}

/// `tpmC: 1234.5, …`.
fn new_orders_per_minute(output: &str) -> Option<f64> {
    let line = output.lines().rev().find_map(|line| line.strip_prefix("tpmC: "))?;
    line.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_those_of_the_standard() {
        assert_eq!(TRANSACTIONS.iter().map(|(_, _, weight)| weight).sum::<u32>(), 100);
        assert!(TRANSACTIONS.iter().all(|(_, sql, _)| sql.contains("WAREHOUSES")));
    }

    #[test]
    fn the_last_count_is_that_of_the_whole_run() {
        let output = "[Current] NEW_ORDER\nFinished\ntpmC: 1234.5, efficiency: 9599.0%\n";
        assert_eq!(new_orders_per_minute(output), Some(1234.5));
    }
}
