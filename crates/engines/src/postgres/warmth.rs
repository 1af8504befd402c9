//! What a server process is worth whose caches others have filled: the same statement, asked three
//! times in one go after others had the CPU. The first time it finds its memory in no cache.

use super::socket::rows;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// Backends for each CPU from which a queue for them is looked for: `too-many-connections` asks for as
/// many that want one at once.
const WORTH_EACH_CPU: u64 = 16;

/// How long a look may take: a server that is asked in vain for two seconds counts as silent.
const PATIENCE: Duration = Duration::from_millis(600);

/// In which others have the CPU.
const PAUSE: Duration = Duration::from_millis(10);

/// Fewer are chance.
const FEWEST: usize = 9;

/// The time since the message came, by the server's own clock: to parse, plan and begin to execute what
/// any request for a row by its key does.
const STATEMENT: &str = "SELECT (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1e9)\
    ::bigint FROM pg_catalog.pg_class WHERE oid = 1259";

/// Whether a server has so many backends that their caches matter.
pub(super) fn is_worth_a_look(backends: u64) -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    backends >= WORTH_EACH_CPU * cpus as u64
}

/// Nanoseconds of the statement for the first and the third time, medians; nothing when there was no
/// time for enough of them.
pub(super) async fn look(client: &Client) -> BTreeMap<String, u64> {
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    let (three, since) = ([STATEMENT; 3].join("; "), Instant::now());
    while since.elapsed() < PATIENCE {
        tokio::time::sleep(PAUSE).await;
        // In one message, which is answered as a whole: it has no reason to let go of the CPU.
        let Ok(messages) = client.simple_query(&three).await else { break };
        let since_message = rows(messages).filter_map(|row| row.get(0)?.parse().ok());
        let since_message: Vec<u64> = since_message.collect();
        if let &[first, second, third] = since_message.as_slice() {
            cold.push(first);
            warm.push(third.saturating_sub(second));
        }
    }
    if cold.len() < FEWEST {
        return BTreeMap::new();
    }
    [("cold_statement_ns", median(cold)), ("warm_statement_ns", median(warm))]
        .map(|(name, ns)| (name.to_owned(), ns))
        .into()
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_counts() {
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(Vec::new()), 0);
        assert!(!is_worth_a_look(1) && is_worth_a_look(u64::MAX / 2));
    }
}
