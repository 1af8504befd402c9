//! `pooler`: fewer connections, each used by many clients in turn.

use crate::case::Case;
use crate::remedy::{Draft, Remedy, file_name, told};
use untax_core::plan::Task;
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: "pooler",
    summary: "a connection pooler in front of the database, with its size and configuration",
    answers: &["pooler", "connection-pooler"],
    plan,
};

/// Connections for each CPU: the PostgreSQL wiki's formula is cores times two, plus what waits
/// for disks.
const EACH_CPU: u32 = 3;

/// Clients that may wait for one of them.
const CLIENTS: u32 = 10_000;

/// Files that PgBouncer has open besides connections: its own sockets, logs and libraries.
const OTHER_FILES: u32 = 100;

fn plan(case: &Case) -> Draft {
    let mut draft = Draft::default();
    for database in case.concerned() {
        // Without the CPUs no size can be told.
        let pool = case.cpus(database).map(|cpus| (cpus * EACH_CPU).max(4));
        draft.tasks.push(Task {
            remedy: REMEDY.id.to_owned(),
            summary: summary(database, pool),
            databases: vec![database.id.clone()],
            file: pool
                .filter(|_| database.engine == "postgres")
                .map(|pool| (file_name(database, "pgbouncer.ini"), configuration(database, pool))),
        });
    }
    draft
}

fn summary(database: &Database, pool: Option<u32>) -> String {
    let saved = pool.and_then(|pool| saved(database, pool)).filter(|saved| saved.0 > 0);
    let saved = saved.map(|saved| format!(", {saved} fewer page tables")).unwrap_or_default();
    let how = match database.engine.as_str() {
        "postgres" => "PgBouncer in front of it, clients connect to port 6432",
        "mysql" => "thread_handling = pool-of-threads (MariaDB) or ProxySQL in front of it",
        _ => "a connection pool in the application",
    };
    let size = match pool {
        Some(pool) => format!("{pool} connections"),
        None => format!("{EACH_CPU} connections for each CPU"),
    };
    format!("{}: {how}; {size}{saved}", told(database))
}

/// Page tables that connections beyond the pool have now.
fn saved(database: &Database, pool: u32) -> Option<Bytes> {
    let connections = *database.connections.value()?;
    let tables = database.memory.page_table_bytes.value()?.0;
    let gone = connections.checked_sub(pool)?;
    Some(Bytes(tables / u64::from(connections.max(1)) * u64::from(gone)))
}

fn configuration(database: &Database, pool: u32) -> String {
    let setting = |name: &str, default: &str| {
        database.setting(name).into_value().filter(|v| !v.is_empty()).unwrap_or(default.to_owned())
    };
    let port = setting("port", "5432");
    let sockets = setting("unix_socket_directories", "/var/run/postgresql");
    let socket = sockets.split(',').next().unwrap_or_default().trim();
    format!(
        "; For /etc/pgbouncer/pgbouncer.ini. What passes through takes PgBouncer's own CPU time:\n\
         ; untax verify with --workload-applied says what it is worth to your clients.\n\
         [databases]\n\
         * = host={socket} port={port}\n\
         \n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = 6432\n\
         unix_socket_dir = {socket}\n\
         ; Who may connect: copy the entries of pg_shadow, or use auth_query.\n\
         auth_type = scram-sha-256\n\
         auth_file = /etc/pgbouncer/userlist.txt\n\
         ; A connection is given back after each transaction: SET, LISTEN, WITH HOLD cursors and\n\
         ; session-level advisory locks do not survive one.\n\
         pool_mode = transaction\n\
         default_pool_size = {pool}\n\
         max_db_connections = {pool}\n\
         ; Each client is an open file: the service needs LimitNOFILE={files} or more.\n\
         max_client_conn = {CLIENTS}\n\
         ; For clients that prepare statements; older versions do not start with this line.\n\
         ; With PgBouncer 1.21 or newer: max_prepared_statements = 200\n",
        files = CLIENTS + pool + OTHER_FILES
    )
}
