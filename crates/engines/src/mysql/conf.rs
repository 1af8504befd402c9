//! Option files (`my.cnf`) and options on the command line.

/// The settings that are read, from files and from the server. No other is ever held.
pub const KEPT: &[&str] = &[
    "aria_pagecache_buffer_size",
    "datadir",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_chunk_size",
    "innodb_buffer_pool_instances",
    "innodb_buffer_pool_size",
    "innodb_buffer_pool_size_max",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_buffer_size",
    "innodb_log_file_size",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "internal_tmp_mem_storage_engine",
    "key_buffer_size",
    "large_page_size",
    "large_pages",
    "max_connections",
    "max_heap_table_size",
    "port",
    "socket",
    "sync_binlog",
    "thread_handling",
    "thread_pool_size",
    "tmp_table_size",
    "tmpdir",
    "version",
    "version_comment",
];

/// One line of an option file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// `[mysqld]`.
    Group(String),
    /// `!include FILE`.
    Include(String),
    /// `!includedir DIRECTORY`.
    IncludeDirectory(String),
    /// `name = value`.
    Option(String, String),
}

/// Reads one line; `None` for comments, empty lines and garbage.
pub fn parse(line: &str) -> Option<Line> {
    let line = line.trim();
    if let Some(group) = line.strip_prefix('[') {
        return Some(Line::Group(group.split_once(']')?.0.trim().to_owned()));
    }
    if let Some(directory) = line.strip_prefix("!includedir") {
        return Some(Line::IncludeDirectory(directory.trim().to_owned()));
    }
    if let Some(file) = line.strip_prefix("!include") {
        return Some(Line::Include(file.trim().to_owned()));
    }
    if line.starts_with(['#', ';', '!']) {
        return None;
    }
    let (name, value) = assignment(line)?;
    Some(Line::Option(name, unquote(&value)))
}

/// `name=value`, `name`, `skip-name`: dashes and underscores are the same, and a name without a
/// value switches something on.
pub fn assignment(text: &str) -> Option<(String, String)> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.trim())),
        None => (text, None),
    };
    let name = name.trim().replace('-', "_").to_lowercase();
    let known = |n: &str| n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if name.is_empty() || !known(&name) {
        return None;
    }
    let name = name.strip_prefix("loose_").unwrap_or(&name);
    let switched = |prefix: &str| name.strip_prefix(prefix).filter(|_| value.is_none());
    for (prefix, word) in [("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")] {
        if let Some(option) = switched(prefix).filter(|option| KEPT.contains(option)) {
            return Some((option.to_owned(), word.to_owned()));
        }
    }
    Some((name.to_owned(), value.unwrap_or("ON").to_owned()))
}

/// Takes off quotes, or what follows a `#`.
fn unquote(value: &str) -> String {
    for quote in ['\'', '"'] {
        if let Some(inside) = value.strip_prefix(quote) {
            return inside.split(quote).next().unwrap_or_default().to_owned();
        }
    }
    value.split('#').next().unwrap_or_default().trim().to_owned()
}

/// What a check keeps of a line: groups, includes, and settings of the list without comments.
pub fn keep(line: &str) -> Option<String> {
    match parse(line)? {
        Line::Group(name) => Some(format!("[{name}]")),
        Line::Include(path) => Some(format!("!include {path}")),
        Line::IncludeDirectory(path) => Some(format!("!includedir {path}")),
        Line::Option(name, value) => {
            // A value that was not quoted may hold both quotes, but then no comment sign.
            let quote = match (value.contains('"'), value.contains('\'')) {
                (false, _) => "\"",
                (true, false) => "'",
                (true, true) => "",
            };
            KEPT.contains(&name.as_str()).then(|| format!("{name} = {quote}{value}{quote}"))
        }
    }
}

/// Whether a server of this product reads a group. A version after the name, as in `mysqld-8.0`,
/// must be the server's own.
pub fn is_read(group: &str, mariadb: bool, version: Option<&str>) -> bool {
    let of_version = |prefix: &str| {
        let wanted = group.strip_prefix(prefix);
        wanted.is_some_and(|wanted| version.is_some_and(|v| v.starts_with(wanted)))
    };
    match group {
        "mysqld" | "server" => true,
        "mariadb" | "mariadbd" | "galera" => mariadb,
        _ => {
            of_version("mysqld-")
                || (mariadb && (of_version("mariadb-") || of_version("mariadbd-")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn option(name: &str, value: &str) -> Line {
        Line::Option(name.to_owned(), value.to_owned())
    }

    #[test]
    fn every_spelling_of_an_option() {
        assert_eq!(
            parse(" innodb-buffer-pool-size = 6G # a lot"),
            Some(option("innodb_buffer_pool_size", "6G"))
        );
        assert_eq!(parse("large-pages"), Some(option("large_pages", "ON")));
        assert_eq!(parse("skip-large_pages"), Some(option("large_pages", "OFF")));
        assert_eq!(parse("skip-networking"), Some(option("skip_networking", "ON")));
        assert_eq!(
            parse("loose-socket=\"/run/a#b.sock\""),
            Some(option("socket", "/run/a#b.sock"))
        );
        assert_eq!(parse("[mysqld]  # x"), Some(Line::Group("mysqld".to_owned())));
        assert_eq!(
            parse("!includedir /etc/mysql/conf.d/"),
            Some(Line::IncludeDirectory("/etc/mysql/conf.d/".to_owned()))
        );
        for nothing in ["", "# port=1", "; x", "=1", "[open", "two words", "!x"] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn secrets_are_not_kept() {
        assert_eq!(keep("password = hunter2"), None);
        assert_eq!(keep("init-connect = 'SET @p=1'"), None);
        assert_eq!(keep("port = 1 # hunter2"), Some("port = \"1\"".to_owned()));
    }

    #[test]
    fn groups_of_others_are_not_read() {
        assert!(is_read("mysqld", false, None));
        assert!(is_read("mysqld-8.0", false, Some("8.0.36")));
        assert!(!is_read("mysqld-5.7", false, Some("8.0.36")));
        assert!(is_read("mariadb-10.11", true, Some("10.11.14")));
        for group in ["client", "mysqld_safe", "mysqldump", "mariadb", "mariadb-10.11"] {
            assert!(!is_read(group, false, Some("10.11.14")), "{group}");
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_reads_the_same_again(line in "\\PC*") {
            if let Some(kept) = keep(&line) {
                prop_assert_eq!(parse(&kept), parse(&line));
                prop_assert_eq!(keep(&kept), Some(kept));
            }
        }

        #[test]
        fn only_settings_of_the_list_are_kept(name in "[a-z_-]{1,30}", value in "[a-z0-9]*") {
            let kept = keep(&format!("{name}={value}"));
            let known = KEPT.contains(&name.replace('-', "_").trim_start_matches("loose_"));
            prop_assert_eq!(kept.is_some(), known);
        }
    }
}
