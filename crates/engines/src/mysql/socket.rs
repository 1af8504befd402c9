//! What a MySQL or MariaDB server tells over its socket.

use super::{conf, files};
use crate::answer::{Answer, converse};
use crate::clock;
use crate::endpoint::{Endpoint, Hints};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, OptsBuilder};
use std::collections::BTreeMap;
use untax_core::Reading::{self, Absent, Denied, Failed, Present};

/// Set by hand, so that the client library does not ask for them first.
const MAX_PACKET_BYTES: usize = 1 << 20;
const WAIT_TIMEOUT_S: usize = 10;

/// The count of accesses to cached data.
pub(super) const COUNTER: &str = "Innodb_buffer_pool_read_requests";

/// Connections, this one included.
const CONNECTED: &str = "Threads_connected";

/// Counts that rules read: temporary tables in memory and on disk, other temporary files, what was
/// read and written for these (MariaDB) and for other data, how many connections asked how
/// often, rows that were looked up by a key, for how long rows were waited for, and how often the log was flushed.
const COUNTS: [&str; 12] = [
    "Created_tmp_disk_tables",
    "Created_tmp_tables",
    "Created_tmp_files",
    "Aria_pagecache_reads",
    "Aria_pagecache_writes",
    "Innodb_data_reads",
    "Innodb_data_writes",
    "Connections",
    "Questions",
    "Handler_read_key",
    "Innodb_row_lock_time",
    "Innodb_os_log_fsyncs",
];

/// `ER_ACCESS_DENIED_ERROR` and relatives, before and after the login: another user may fare better.
const REFUSALS: [u16; 5] = [1044, 1045, 1130, 1227, 1698];

pub(super) fn ask(endpoint: &Endpoint) -> Reading<Answer> {
    let Some(path) = endpoint.entry.unix_path() else {
        return Absent("the server listens on no local socket".to_owned());
    };
    converse(async {
        match log_in(&path, &endpoint.user).await {
            Ok(server) => talk(server).await.map_or_else(|error| words(&error), Present),
            Err(error) => words_at_login(&error, &endpoint.user),
        }
    })
}

async fn log_in(path: &str, user: &str) -> Result<Conn, Error> {
    let options = OptsBuilder::default()
        .socket(Some(path))
        .user(Some(user))
        .max_allowed_packet(Some(MAX_PACKET_BYTES))
        .wait_timeout(Some(WAIT_TIMEOUT_S))
        .stmt_cache_size(Some(0));
    Conn::new(options).await
}

async fn talk(mut server: Conn) -> Result<Answer, Error> {
    let mut values = show(&mut server, "VARIABLES", conf::KEPT).await?;
    let status =
        show(&mut server, "STATUS", &[&COUNTS[..], &[COUNTER, CONNECTED]].concat()).await?;
    let told_at_us = Some(clock::since_boot_us());
    server.disconnect().await?;
    let number = |name: &str| status.get(name).and_then(|value| value.parse::<u64>().ok());
    let version = values.remove("version").unwrap_or_default();
    let comment = values.remove("version_comment").unwrap_or_default();
    Ok(Answer {
        version: files::number(&version).map(str::to_owned),
        product: Some(product(&version, &comment).to_owned()),
        connections: number(CONNECTED).map(|all| all.saturating_sub(1) as u32),
        accesses: match number(COUNTER) {
            Some(count) => Present(count),
            None => Absent(format!("the server has no {COUNTER}")),
        },
        told_at_us,
        counts: COUNTS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), number(name)?)))
            .collect(),
        settings: values,
        hints: Hints::default(),
    })
}

async fn show(
    server: &mut Conn,
    what: &str,
    names: &[&str],
) -> Result<BTreeMap<String, String>, Error> {
    let names = names.join("','");
    let query = format!("SHOW GLOBAL {what} WHERE Variable_name IN ('{names}')");
    let rows: Vec<(String, String)> = server.query(query).await?;
    Ok(rows.into_iter().collect())
}

fn product(version: &str, comment: &str) -> &'static str {
    if version.contains("MariaDB") || comment.contains("MariaDB") {
        "MariaDB"
    } else if comment.contains("Percona") {
        "Percona Server"
    } else {
        "MySQL"
    }
}

/// The same while logging in. A client that cannot do what the server asks of it is refused by that: MySQL
/// 8 and newer ask for a plugin by chance where an account does not exist (`decoy_user`), which they do
/// for an OS user that has none.
fn words_at_login(error: &Error, user: &str) -> Reading<Answer> {
    match error {
        Error::Driver(why) => Denied(format!("the server wants {user} to log in otherwise: {why}")),
        error => words(error),
    }
}

/// The server's own words, where it has any.
fn words(error: &Error) -> Reading<Answer> {
    match error {
        Error::Server(words) if REFUSALS.contains(&words.code) => {
            Denied(format!("the server says: {}", words.message))
        }
        Error::Server(words) => Failed(format!("the server says: {}", words.message)),
        error => Failed(format!("asking the server: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_async::{DriverError, IoError, ServerError};

    #[test]
    fn products_are_told_apart() {
        assert_eq!(product("10.11.14-MariaDB-0+deb12u2", "Debian 12"), "MariaDB");
        assert_eq!(product("8.0.36-28", "Percona Server (GPL), Release 28"), "Percona Server");
        assert_eq!(product("8.0.36", "MySQL Community Server - GPL"), "MySQL");
    }

    #[test]
    fn a_login_that_the_client_cannot_do_is_a_refusal() {
        let name = "sha256_password".to_owned();
        let unknown = Error::Driver(DriverError::UnknownAuthPlugin { name });
        let said = words_at_login(&unknown, "mysql");
        assert!(matches!(&said, Denied(why) if why.contains("sha256_password")), "{said:?}");
        let old = Error::Driver(DriverError::MysqlOldPasswordDisabled);
        assert!(matches!(words_at_login(&old, "mysql"), Denied(_)));
        assert!(matches!(words(&unknown), Failed(_)), "after the login it is none");
        let server = |code| {
            let (message, state) = ("Access denied".to_owned(), "28000".to_owned());
            Error::Server(ServerError { code, message, state })
        };
        assert!(matches!(words_at_login(&server(1698), "mysql"), Denied(_)));
        assert!(
            matches!(words_at_login(&server(1040), "mysql"), Failed(_)),
            "too many connections"
        );
        let gone = Error::Io(IoError::Io(std::io::ErrorKind::ConnectionReset.into()));
        assert!(matches!(words_at_login(&gone, "mysql"), Failed(_)));
    }
}
