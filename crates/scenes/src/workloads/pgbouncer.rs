//! A server behind a pooler, as most are that many clients use.

use crate::release::{POSTGRES, POSTGRES_18};
use crate::setup::Setup;
use crate::workload::{Prepared, Workload};
use crate::{PgBouncer, Postgres, SceneError};
use std::path::Path;

pub(crate) const WORKLOAD: Workload = Workload {
    id: "pgbouncer",
    summary: "40 clients of a PgBouncer with 8 connections read and write",
    releases: &[POSTGRES, POSTGRES_18],
    prepare,
};

const PORT: u16 = 6432;

/// What clients ask for: a read and a write.
const SCRIPT: &str = "\\set aid random(1, 1000000)\n\
    \\set other random(1, 1000000)\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
    UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :other;\n";

fn prepare(setup: &Setup) -> Result<Prepared, SceneError> {
    let server = Postgres::start_as(setup)?;
    server.pgbench_fill(10, 100)?;
    let (sockets, user) = (server.socket_directory(), server.user().to_owned());
    let configuration = server.keep(
        "pgbouncer.ini",
        &format!(
            "[databases]\n{}\n[pgbouncer]\nlisten_port = {PORT}\n\
             unix_socket_dir = {sockets}\nauth_type = trust\n\
             auth_file = /etc/pgbouncer/userlist.txt\npool_mode = transaction\n\
             default_pool_size = 8\nmax_client_conn = 200\n",
            format_args!("postgres = {}", server.address()),
        ),
    )?;
    let socket = Path::new(&sockets).join(format!(".s.PGSQL.{PORT}"));
    let pooler = PgBouncer::start(Path::new(&configuration), &user, "secret", &socket)?;
    let databases = vec![server.watched("server")];
    let load = move |seconds| server.scripts_through(PORT, &[("pooled", SCRIPT, 1)], 40, seconds);
    Ok(Prepared::new(databases, load).with(pooler))
}
