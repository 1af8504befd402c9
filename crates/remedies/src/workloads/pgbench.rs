//! `pgbench`: single rows by primary key.

use super::commands::{Commands, Load, SCRATCH, Workload, as_user, quoted, setting};
use untax_core::{Bytes, Database};

pub const WORKLOAD: Workload = Workload {
    id: "pgbench",
    engine: "postgres",
    summary: "reads single rows by primary key, in a database that it makes and drops",
    commands,
};

/// What 100,000 rows take, with their index: the scale 1 of pgbench.
const SCALE: Bytes = Bytes::from_mib(15);

fn commands(database: &Database, load: &Load) -> Commands {
    let directories = setting(database, "unix_socket_directories");
    let socket = directories.as_deref().and_then(|all| all.split(',').next()).map(str::trim);
    let port = setting(database, "port").unwrap_or_else(|| "5432".to_owned());
    let server = format!("-h {} -p {}", quoted(socket.unwrap_or("127.0.0.1")), quoted(port.trim()));
    let user = as_user(load);
    let scale = (load.data.0 / SCALE.0).max(1);
    let (clients, seconds) = (load.clients, load.seconds);
    let jobs = clients.clamp(1, 2);
    let sql = |sql: &str| format!("{user}psql -X -q {server} -c '{sql}' postgres");
    let drop = sql(&format!("DROP DATABASE IF EXISTS {SCRATCH}"));
    let make = sql(&format!("CREATE DATABASE {SCRATCH}"));
    Commands {
        prepare: format!("{drop} && {make} && {user}pgbench -i -q -s {scale} {server} {SCRATCH}"),
        run: format!(
            "{user}pgbench -n -S -M prepared -c {clients} -j {jobs} -T {seconds} {server} {SCRATCH}"
        ),
        clean: drop,
    }
}
