//! The titles that PostgreSQL's processes give themselves.

use untax_core::database::ProcessRole;

/// What all titles begin with. A cluster's name may follow, and a colon.
const PREFIX: &str = "postgres: ";

/// What a title of a client's process is shortened to.
const CLIENT: &str = "client backend";

/// The same for a process that sends a standby its changes.
const SENDER: &str = "walsender";

/// What a process does, by its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Serves a client.
    Client,
    /// Serves a standby or a subscriber.
    Sender,
    /// All else: writers, launchers, workers.
    Auxiliary,
}

/// What a title says; `None` for a command line that is no title.
///
/// A client's is `postgres: [cluster: ]user database host(port) state`, with `[local]` in the
/// place of a host; no other process has a client's address. User and database names may hold
/// spaces, and be `checkpointer`.
pub fn kind(title: &str) -> Option<Kind> {
    let rest = title.strip_prefix(PREFIX)?.trim_end();
    if rest == CLIENT {
        return Some(Kind::Client);
    }
    if rest == SENDER {
        return Some(Kind::Sender);
    }
    if !rest.split(' ').any(is_address) {
        return Some(Kind::Auxiliary);
    }
    let named = rest.split_once(": ").map_or(rest, |(_cluster, rest)| rest);
    let sends = ["walsender ", "wal sender process "].iter().any(|s| named.starts_with(s));
    Some(if sends { Kind::Sender } else { Kind::Client })
}

/// What a process of this title is for. The one that applies a primary's log (version 16 and later) waits for other
/// processes; so do workers that read for others (18), and these wait for them.
pub fn role(title: &str) -> Option<ProcessRole> {
    Some(match kind(title)? {
        Kind::Client => ProcessRole::Client,
        Kind::Auxiliary if is_named(title, "startup") => ProcessRole::FedByPeers,
        Kind::Auxiliary if is_named(title, "io worker ") => ProcessRole::Helper,
        Kind::Sender | Kind::Auxiliary => ProcessRole::Other,
    })
}

fn is_named(title: &str, work: &str) -> bool {
    let own = title.strip_prefix(PREFIX);
    let named = own.map(|rest| rest.split_once(": ").map_or(rest, |(_cluster, rest)| rest));
    named.is_some_and(|named| named.starts_with(work))
}

fn is_address(word: &str) -> bool {
    let port = |w: &str| {
        let (host, rest) = w.rsplit_once('(')?;
        let port = rest.strip_suffix(')')?;
        Some(!host.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
    };
    word == "[local]" || port(word).unwrap_or(false)
}

/// Leaves out who the client is: names of users and databases, addresses. Anything but a title is
/// left as it is.
pub fn shorten(command_line: String) -> String {
    match kind(command_line.trim_end_matches('\0')) {
        Some(Kind::Client) => format!("{PREFIX}{CLIENT}"),
        Some(Kind::Sender) => format!("{PREFIX}{SENDER}"),
        Some(Kind::Auxiliary) | None => command_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clients_are_told_from_the_servers_own_processes() {
        for title in [
            "postgres: postgres postgres [local] idle",
            "postgres: 15/main: shop shop 10.0.0.1(4711) SELECT",
            "postgres: checkpointer my db app.example.org(1) idle in transaction",
            "postgres: u d [local] authentication",
            "postgres: u d fe80::1%eth0(55) idle  ",
        ] {
            assert_eq!(kind(title), Some(Kind::Client), "{title}");
        }
        for title in [
            "postgres: checkpointer ",
            "postgres: 15/main: background writer ",
            "postgres: autovacuum worker shop",
            "postgres: logical replication worker for subscription 16394 ",
            "postgres: archiver last was 00000001000000000000001F",
            "postgres: parallel worker for PID 4711 ",
            "postgres: startup recovering 000000010000000000000003",
            "postgres: ",
        ] {
            assert_eq!(kind(title), Some(Kind::Auxiliary), "{title}");
        }
        let sender = "postgres: 15/main: walsender repl 10.0.0.2(4444) streaming 0/3000148";
        assert_eq!(kind(sender), Some(Kind::Sender));
        assert_eq!(kind("/usr/lib/postgresql/15/bin/postgres"), None);
    }

    #[test]
    fn a_process_is_for_clients_for_its_peers_or_for_neither() {
        let role = |title: &str| role(&format!("postgres: {title}"));
        for title in ["startup shop [local] idle", "15/main: ann shop 10.0.0.2(4444) COMMIT"] {
            assert_eq!(role(title), Some(ProcessRole::Client), "{title}");
        }
        assert_eq!(role("io worker 2"), Some(ProcessRole::Helper));
        for title in ["startup recovering 0000000100000003", "15/main: startup "] {
            assert_eq!(role(title), Some(ProcessRole::FedByPeers), "{title}");
        }
        for title in [
            "walsender ann 10.0.0.2(4444) streaming 0/3000148",
            "parallel worker for PID 4711 ",
            "checkpointer ",
            "walwriter ",
        ] {
            assert_eq!(role(title), Some(ProcessRole::Other), "{title}");
        }
        assert_eq!(super::role("startup"), None);
    }

    proptest! {
        #[test]
        fn shortening_keeps_the_kind_and_leaves_out_the_client(
            user in "[a-z ]{1,8}",
            database in "[a-z ]{1,8}",
            state in "[a-z ]{0,8}",
        ) {
            let title = format!("postgres: {user} {database} 10.1.2.3(4711) {state}");
            let short = shorten(title.clone());
            prop_assert_eq!(kind(&short), kind(&title));
            prop_assert!(!short.contains("10.1.2.3"));
            prop_assert_eq!(shorten(short.clone()), short);
        }

        #[test]
        fn other_command_lines_stay(line in "[^p]\\PC*") {
            prop_assert_eq!(shorten(line.clone()), line);
        }
    }
}
