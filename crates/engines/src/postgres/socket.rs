//! What a PostgreSQL server tells over its socket.

use super::{cold_caches, conf};
use crate::answer::{Answer, converse};
use crate::clock;
use crate::endpoint::{Endpoint, Entry, Hints};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};
use untax_core::Reading::{self, Denied, Failed, Present};

/// Databases that every cluster has.
const DATABASES: [&str; 2] = ["postgres", "template1"];

/// The superuser's usual name, tried when the OS user's is not a role.
const SUPERUSER: &str = "postgres";

/// For this session only: never long, never changing anything.
const OPTIONS: &str = "-c statement_timeout=2000 -c default_transaction_read_only=on";

pub(super) fn ask(endpoint: &Endpoint) -> Reading<Answer> {
    converse(async {
        let mut refused = None;
        for role in [endpoint.user.as_str(), SUPERUSER] {
            for database in endpoint.hints.busiest.as_deref().into_iter().chain(DATABASES) {
                match connect(endpoint, role, database).await {
                    Ok(answer) => return Present(answer),
                    Err(error) => {
                        let refusal = words(&error);
                        let final_word = !matches!(refusal, Denied(_));
                        refused.get_or_insert(refusal);
                        if final_word {
                            break;
                        }
                    }
                }
            }
        }
        refused.unwrap_or_else(|| Failed("the server was not asked".to_owned()))
    })
}

async fn connect(endpoint: &Endpoint, role: &str, database: &str) -> Result<Answer, Refusal> {
    let entry = &endpoint.entry;
    let (client, version) = open(entry, role, database).await?;
    let names = conf::KEPT.join("','");
    let settings = format!(
        "SELECT name, current_setting(name) FROM pg_catalog.pg_settings \
         WHERE name IN ('{names}', 'in_hot_standby')"
    );
    // Sent in one go: each answer that is waited for costs a turn in the queue for a CPU.
    let queries = queries(version.as_deref());
    let (settings, mut counts, together) = tokio::join!(
        client.simple_query(&settings),
        counts(&client, &queries),
        client.simple_query(DATABASES_TOGETHER)
    );
    let told_at_us = Some(clock::since_boot_us());
    let settings = rows(settings?)
        .filter_map(|row| Some((row.get(0)?.to_owned(), row.get(1)?.to_owned())))
        .collect();
    let mut busiest: Option<String> = None;
    let accesses = match together {
        Ok(messages) => {
            let row = rows(messages).next();
            let column = |name: &str| row.as_ref().and_then(|row| row.get(name));
            busiest = column("busiest").map(str::to_owned);
            for name in ["transactions", "tup_fetched", "accesses_of_all", "backends"] {
                let count = column(name).and_then(|count| count.parse().ok());
                counts.extend(count.map(|count| (name.to_owned(), count)));
            }
            let hits = column("hits").and_then(|hits| hits.parse().ok());
            Present(hits).parse("sum(blks_hit)", |hits| *hits)
        }
        Err(error) => words(&error.into()),
    };
    match busiest.as_deref().filter(|busiest| *busiest != database) {
        None => counts.extend(self::counts(&client, &[OF_TABLES]).await),
        // It may refuse connections.
        Some(busiest) => {
            if let Ok((client, _)) = open(entry, role, busiest).await {
                counts.extend(self::counts(&client, &[OF_TABLES]).await);
            }
        }
    }
    let many =
        counts.get("backends").is_some_and(|backends| cold_caches::has_enough_backends(*backends));
    if endpoint.timing && many {
        counts.extend(cold_caches::time_statements(&client).await);
    }
    let hints = Hints { busiest, listening: None };
    let (product, connections) = (None, None);
    Ok(Answer { version, product, connections, accesses, told_at_us, counts, settings, hints })
}

/// A connection, and the server's version.
async fn open(
    entry: &Entry,
    role: &str,
    database: &str,
) -> Result<(Client, Option<String>), Refusal> {
    let mut config = Config::new();
    config.user(role).dbname(database).application_name("untax").options(OPTIONS);
    let (client, connection) = config.connect_raw(entry.connect().await?, NoTls).await?;
    let version = connection.parameter("server_version").map(first_word);
    tokio::spawn(connection);
    Ok((client, version))
}

/// What all databases did, what they share counted or left out, and which of them did most.
const DATABASES_TOGETHER: &str = "SELECT sum(blks_hit)::bigint AS hits, \
    sum(xact_commit + xact_rollback)::bigint AS transactions, \
    sum(tup_fetched)::bigint AS tup_fetched, \
    sum(numbackends)::bigint AS backends, \
    (sum(blks_hit + blks_read) FILTER (WHERE datname IS NOT NULL))::bigint AS accesses_of_all, \
    (array_agg(datname ORDER BY blks_hit + blks_read DESC) \
     FILTER (WHERE datname IS NOT NULL))[1] AS busiest \
    FROM pg_catalog.pg_stat_database";

/// What the rules read of connections, of the log and of checkpoints, and the first and the last major
/// version with these views.
const QUERIES: [(u32, u32, &str); 5] = [
    (14, u32::MAX, "SELECT sum(sessions)::bigint AS sessions FROM pg_catalog.pg_stat_database"),
    // What processes wait for just now, as far as another process of a query, a
    // lock, the log or a standby is meant. The
    // view looks up who they are as well: that takes a server longer than the rest.
    (
        10,
        u32::MAX,
        "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting_for_locks, \
         count(*) FILTER (WHERE wait_event_type = 'IPC' AND \
                          wait_event ~* '^(executegather|parallel|bgworker|messagequeue|hash)') \
         AS waiting_for_workers, \
         count(*) FILTER (WHERE wait_event = 'SyncRep') AS waiting_for_others, \
         count(*) FILTER (WHERE wait_event ~* '^wal(write|insert|sync)') AS waiting_for_log, \
         count(*) FILTER (WHERE wait_event_type LIKE 'LWLock%' AND wait_event !~* '^wal') \
         AS waiting_for_latches \
         FROM pg_catalog.pg_stat_get_activity(NULL)",
    ),
    (14, u32::MAX, "SELECT wal_records, wal_fpi, wal_bytes::bigint FROM pg_catalog.pg_stat_wal"),
    (1, 16, "SELECT checkpoints_timed, checkpoints_req FROM pg_catalog.pg_stat_bgwriter"),
    (
        17,
        u32::MAX,
        "SELECT num_timed AS checkpoints_timed, num_requested AS checkpoints_req \
         FROM pg_catalog.pg_stat_checkpointer",
    ),
];

/// Those that this version answers: to try the others would fill its log with errors.
fn queries(version: Option<&str>) -> Vec<&'static str> {
    let number = |version: &str| {
        let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
        version[..digits].parse::<u32>().ok()
    };
    let Some(major) = version.and_then(number) else { return Vec::new() };
    let has = |(first, last, _): &&(u32, u32, _)| (*first..=*last).contains(&major);
    QUERIES.iter().filter(has).map(|(_, _, query)| *query).collect()
}

/// Accesses to blocks: of one database, and of what its users made, which is summed only where that
/// is a matter of milliseconds.
const OF_TABLES: &str = "SELECT blks_hit + blks_read AS accesses_of_busiest, \
    (SELECT sum(pg_catalog.pg_stat_get_blocks_fetched(oid))::bigint FROM pg_catalog.pg_class \
     WHERE oid >= 16384 AND (SELECT reltuples FROM pg_catalog.pg_class \
                             WHERE oid = 'pg_catalog.pg_class'::regclass) < 20000) \
    AS accesses_of_tables \
    FROM pg_catalog.pg_stat_database WHERE datname = current_database()";

/// Numbers by the names of their columns. A query that fails leaves out its own alone.
async fn counts(client: &Client, queries: &[&str]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let answers = join_all(queries.iter().map(|query| client.simple_query(query))).await;
    for row in answers.into_iter().flatten().flat_map(rows) {
        let columns = row.columns().iter().enumerate();
        let named = columns.filter_map(|(at, column)| {
            Some((column.name().to_owned(), row.get(at)?.parse().ok()?))
        });
        counts.extend(named);
    }
    counts
}

fn rows(messages: Vec<SimpleQueryMessage>) -> impl Iterator<Item = tokio_postgres::SimpleQueryRow> {
    messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}

/// `15.14 (Debian 15.14-0+deb12u1)` is version 15.14.
fn first_word(text: &str) -> String {
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Why there is no conversation.
enum Refusal {
    Io(std::io::Error),
    Server(Error),
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Server(error)
    }
}

/// The server's own words, where it has any.
fn words<T>(refusal: &Refusal) -> Reading<T> {
    let error = match refusal {
        Refusal::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Denied(format!("connecting to the server: {error}"));
        }
        Refusal::Io(error) => return Failed(format!("connecting to the server: {error}")),
        Refusal::Server(error) => error,
    };
    match error.as_db_error() {
        Some(words) if is_refusal(words) => Denied(format!("the server says: {}", words.message())),
        Some(words) => Failed(format!("the server says: {}", words.message())),
        // The client library, before it answers a request for a password that it does not have.
        None if error.to_string().contains("configuration") => {
            Denied("the server wants a password".to_owned())
        }
        None => Failed(format!("asking the server: {error}")),
    }
}

/// Whether another role or database may fare better.
fn is_refusal(error: &DbError) -> bool {
    let refusals = [
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_CATALOG_NAME,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    refusals.contains(error.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_asked_what_it_has() {
        let views = |version| -> Vec<&str> {
            let queries = queries(version).into_iter();
            queries.filter_map(|query| query.rsplit_once('.').map(|(_, view)| view)).collect()
        };
        let of_all = ["pg_stat_database", "pg_stat_get_activity(NULL)", "pg_stat_wal"];
        assert_eq!(views(Some("13.14")), ["pg_stat_get_activity(NULL)", "pg_stat_bgwriter"]);
        assert_eq!(views(Some("15.18")), [&of_all[..], &["pg_stat_bgwriter"]].concat());
        assert_eq!(views(Some("17beta1")), [&of_all[..], &["pg_stat_checkpointer"]].concat());
        assert!(views(None).is_empty());
    }
}
