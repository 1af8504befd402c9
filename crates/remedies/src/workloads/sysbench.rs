//! `sysbench`: single rows by primary key.

use super::commands::{Commands, Load, SCRATCH, Workload, quoted, setting};
use untax_core::{Bytes, Database};

pub const WORKLOAD: Workload = Workload {
    id: "sysbench",
    engine: "mysql",
    summary: "reads single rows by primary key (oltp_point_select), in a database that it makes \
              and drops",
    commands,
};

/// What a row takes, with its indexes.
const ROW: Bytes = Bytes(240);

/// As the OS user who runs untax, whom the server knows by its socket.
fn commands(database: &Database, load: &Load) -> Commands {
    let socket = setting(database, "socket").map(|socket| quoted(&socket));
    let (clients, seconds) = (load.clients, load.seconds);
    let rows = (load.data.0 / ROW.0).max(1000);
    let client = socket.as_ref().map(|at| format!(" --socket={at}")).unwrap_or_default();
    let server = socket.as_ref().map(|at| format!(" --mysql-socket={at}")).unwrap_or_default();
    let sql = |sql: &str| format!("mysql --no-defaults{client} -e '{sql}'");
    let drop = sql(&format!("DROP DATABASE IF EXISTS {SCRATCH}"));
    let make = sql(&format!("CREATE DATABASE {SCRATCH}"));
    let sysbench = format!(
        "sysbench oltp_point_select --db-driver=mysql{server} --mysql-user=\"$(id -un)\" \
         --mysql-db={SCRATCH} --table-size={rows} --threads={clients} --time={seconds}"
    );
    Commands {
        prepare: format!("{drop} && {make} && {sysbench} prepare"),
        run: format!("{sysbench} run"),
        clean: drop,
    }
}
