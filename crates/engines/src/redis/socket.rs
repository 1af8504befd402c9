//! What a Redis or Valkey server tells over its socket.

use super::conf;
use crate::answer::{Answer, converse};
use crate::clock;
use crate::endpoint::{Endpoint, Hints, Stream};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError, RedisResult, ServerErrorKind,
};
use std::collections::BTreeMap;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};

/// The count of accesses to cached data. `keyspace_hits` and `keyspace_misses` leave out writes, and with them half of what
/// touches memory; commands count both.
pub(super) const COUNTER: &str = "total_commands_processed";

/// Lines of `INFO` that are kept beside the settings.
const KEPT_INFO: [&str; 6] = [
    "latest_fork_usec",
    "mem_allocator",
    "rdb_bgsave_in_progress",
    "redis_mode",
    "used_memory",
    "used_memory_dataset",
];

/// Counts that rules read: how many connections asked how often, and how often it read from them.
const COUNTS: [&str; 3] =
    ["total_connections_received", "total_commands_processed", "total_reads_processed"];

pub(super) fn ask(endpoint: &Endpoint) -> Reading<Answer> {
    converse(async {
        match endpoint.entry.connect().await {
            Ok(stream) => talk(stream).await.map_or_else(|error| words(&error), Present),
            Err(error) => unreachable(&error),
        }
    })
}

async fn talk(stream: Box<dyn Stream>) -> RedisResult<Answer> {
    let session = RedisConnectionInfo::default().set_skip_set_lib_name();
    // The deadline is kept by whoever started this process.
    let patient = AsyncConnectionConfig::new().set_response_timeout(None);
    let (mut server, driver) =
        MultiplexedConnection::new_with_config(&session, stream, patient).await?;
    tokio::spawn(driver);
    let info: String = redis::cmd("INFO").query_async(&mut server).await?;
    let told_at_us = Some(clock::since_boot_us());
    let info = parse_info(&info);
    let mut settings = settings(&mut server).await;
    if !settings.is_empty() {
        let kept = KEPT_INFO.iter().filter_map(|name| info.get_key_value(*name));
        settings.extend(kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }
    Ok(Answer { told_at_us, ..answer(&info, settings) })
}

/// A server may have renamed or forbidden the command; then files have to do. In one go where it
/// can (7.0 and newer), as each command counts among those that are counted.
async fn settings(server: &mut MultiplexedConnection) -> BTreeMap<String, String> {
    let mut all = redis::cmd("CONFIG");
    all.arg("GET").arg(conf::KEPT);
    if let Ok(got) = all.query_async::<Vec<String>>(server).await {
        return pairs(&got).collect();
    }
    let mut settings = BTreeMap::new();
    for name in conf::KEPT {
        let mut one = redis::cmd("CONFIG");
        match one.arg("GET").arg(name).query_async::<Vec<String>>(server).await {
            Ok(got) => settings.extend(pairs(&got)),
            Err(_) => break,
        }
    }
    settings
}

fn pairs(flat: &[String]) -> impl Iterator<Item = (String, String)> {
    flat.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()))
}

fn answer(info: &BTreeMap<&str, &str>, settings: BTreeMap<String, String>) -> Answer {
    let number = |name: &str| info.get(name).and_then(|value| value.parse::<u64>().ok());
    let valkey = info.get("valkey_version");
    let version = valkey.or_else(|| info.get("redis_version"));
    Answer {
        version: version.map(|version| (*version).to_owned()),
        product: Some(if valkey.is_some() { "Valkey" } else { "Redis" }.to_owned()),
        connections: number("connected_clients").map(|all| all.saturating_sub(1) as u32),
        accesses: match number(COUNTER) {
            Some(count) => Present(count),
            None => Absent(format!("INFO has no {COUNTER}")),
        },
        told_at_us: None,
        counts: COUNTS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), number(name)?)))
            .collect(),
        settings,
        hints: Hints::default(),
    }
}

/// `name:value` lines; sections begin with `#`.
fn parse_info(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once(':')).collect()
}

fn unreachable(error: &std::io::Error) -> Reading<Answer> {
    let words = format!("connecting to the server: {error}");
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => Denied(words),
        _ => Failed(words),
    }
}

fn words(error: &RedisError) -> Reading<Answer> {
    match error.kind() {
        ErrorKind::AuthenticationFailed => Denied("the server wants a password".to_owned()),
        ErrorKind::Server(ServerErrorKind::NoPerm) => Denied(format!("the server says: {error}")),
        _ if error.code() == Some("NOAUTH") => Denied("the server wants a password".to_owned()),
        ErrorKind::Server(_) => Failed(format!("the server says: {error}")),
        _ => Failed(format!("asking the server: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_tells_valkey_from_redis() {
        let text = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\n# Clients\r\n\
                    connected_clients:3\r\ntotal_commands_processed:900\r\n";
        let answer = answer(&parse_info(text), BTreeMap::new());
        assert_eq!(answer.version.as_deref(), Some("8.0.1"));
        assert_eq!(answer.product.as_deref(), Some("Valkey"));
        assert_eq!(answer.connections, Some(2));
        assert_eq!(answer.accesses, Present(900));
    }

    #[test]
    fn a_silent_info_is_not_zero() {
        let answer = answer(&parse_info("garbage"), BTreeMap::new());
        assert_eq!((answer.version, answer.connections), (None, None));
        assert!(!answer.accesses.is_present());
    }
}
