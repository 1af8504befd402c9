//! How much longer a statement takes a server process whose memory others have driven out of the
//! caches: the same prepared statement, asked three times in one go after others had the CPU. The first
//! time it finds its memory in no cache; its code is that of any other prepared statement, which the
//! other processes keep in them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, Row};
use untax_core::stats;

/// Backends for each CPU from which cold caches are looked for: `too-many-connections` asks for as many
/// at work.
const WORTH_EACH_CPU: u64 = 16;

/// How long a look takes.
const PATIENCE: Duration = Duration::from_millis(600);

/// How long it may take where the queue for the CPUs is so long that fewer answers than are needed
/// come in that time. `TIMED` of the one who asks has room for it.
const MOST_PATIENCE: Duration = Duration::from_secs(6);

/// In which others have the CPU.
const PAUSE: Duration = Duration::from_millis(10);

/// Fewer answers are chance.
const FEWEST: usize = 9;

/// The time since the message came that binds it, by the server's own clock: to bind and execute what
/// any request for a row by its key does.
const STATEMENT: &str = "SELECT (extract(epoch FROM clock_timestamp() - transaction_timestamp()) * 1e9)\
    ::bigint FROM pg_catalog.pg_class WHERE oid = 1259";

/// Whether a server has so many backends that their caches matter.
pub(super) fn has_enough_backends(backends: u64) -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    backends >= WORTH_EACH_CPU * cpus as u64
}

/// The part of the answers that were no slower. The clock goes on while another has the CPU, which may
/// come upon most of those that begin with cold caches, and makes milliseconds of microseconds.
const UNDISTURBED: f64 = 0.25;

/// Nanoseconds of the statement for the first and the third time, as far as nobody disturbed it; nothing
/// when there was no time for enough of them.
pub(super) async fn time_statements(client: &Client) -> BTreeMap<String, u64> {
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    let Ok(statement) = client.prepare(STATEMENT).await else { return BTreeMap::new() };
    let ask = || client.query_one(&statement, &[]);
    let since = Instant::now();
    let enough = |count| since.elapsed() >= if count < FEWEST { MOST_PATIENCE } else { PATIENCE };
    while !enough(cold.len()) {
        tokio::time::sleep(PAUSE).await;
        // In one message: the server has no reason to let go of the CPU.
        let (Ok(first), Ok(_), Ok(third)) = tokio::join!(ask(), ask(), ask()) else { break };
        let ns = |row: &Row| row.try_get::<_, i64>(0).ok().map(|ns| ns as f64);
        if let (Some(first), Some(third)) = (ns(&first), ns(&third)) {
            cold.push(first);
            warm.push(third);
        }
    }
    if cold.len() < FEWEST {
        return BTreeMap::new();
    }
    let times = [("cold_statement_ns", cold), ("warm_statement_ns", warm)];
    let time = |(name, ns): (&str, Vec<f64>)| {
        Some((name.to_owned(), stats::quantile(&ns, UNDISTURBED)? as u64))
    };
    times.into_iter().filter_map(time).collect()
}
