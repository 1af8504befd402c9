//! `redis-benchmark`: reads of keys, which need not be there.

use super::commands::{Commands, Load, Workload, quoted, setting};
use untax_core::Database;

pub const WORKLOAD: Workload = Workload {
    id: "redis-benchmark",
    engine: "redis",
    summary: "reads random keys and writes none; requests that this machine serves in about the \
              length of a trial",
    commands,
};

/// Requests for each second of a trial: this program knows no duration. What one core serves
/// without pipelining; a faster server makes shorter trials.
const A_SECOND: u32 = 50_000;

fn commands(database: &Database, load: &Load) -> Commands {
    let server = match setting(database, "unixsocket") {
        Some(socket) => format!("-s {}", quoted(&socket)),
        None => format!(
            "-p {}",
            quoted(&setting(database, "port").unwrap_or_else(|| "6379".to_owned()))
        ),
    };
    let (clients, requests) = (load.clients, load.seconds.saturating_mul(A_SECOND));
    Commands {
        prepare: String::new(),
        run: format!("redis-benchmark {server} -q -t get -r 100000 -c {clients} -n {requests}"),
        clean: String::new(),
    }
}
