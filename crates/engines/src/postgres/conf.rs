//! `postgresql.conf` and the files it includes.

/// The settings that are read, from files and from the server. No other is ever held.
pub const KEPT: &[&str] = &[
    "autovacuum_max_workers",
    "checkpoint_timeout",
    "config_file",
    "data_directory",
    "dynamic_shared_memory_type",
    "effective_cache_size",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "huge_page_size",
    "huge_pages",
    "huge_pages_status",
    "listen_addresses",
    "maintenance_work_mem",
    "max_connections",
    "max_wal_size",
    "max_worker_processes",
    "port",
    "shared_buffers",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    "shared_memory_type",
    "synchronous_commit",
    "temp_buffers",
    "unix_socket_directories",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "work_mem",
];

/// Lines that pull in other files.
pub const INCLUDES: &[&str] = &["include", "include_if_exists", "include_dir"];

/// One line: its name in lower case, and its value without quotes. `None` for comments, empty
/// lines and garbage.
pub fn parse(line: &str) -> Option<(String, String)> {
    let line = line.trim_start();
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "_.$".contains(c)));
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => unquote(quoted)?,
        None => rest.split(|c: char| c.is_whitespace() || c == '#').next()?.to_owned(),
    };
    Some((name.to_ascii_lowercase(), value))
}

/// The text up to the closing quote; `''` and `\'` stand for a quote.
fn unquote(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\'' if characters.peek() == Some(&'\'') => value.push('\''),
            '\'' => return Some(value),
            '\\' => value.push(*characters.peek()?),
            other => {
                value.push(other);
                continue;
            }
        }
        characters.next();
    }
    None
}

/// What a check keeps of a line: settings of the list, and includes, without their comments.
pub fn keep(line: &str) -> Option<String> {
    let (name, value) = parse(line)?;
    let kept = KEPT.contains(&name.as_str()) || INCLUDES.contains(&name.as_str());
    let quoted = value.replace('\\', "\\\\").replace('\'', "''");
    kept.then(|| format!("{name} = '{quoted}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn both(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn every_spelling_of_a_setting() {
        assert_eq!(parse("shared_buffers = 6GB  # a lot"), Some(both("shared_buffers", "6GB")));
        assert_eq!(parse("  Huge_Pages on#x"), Some(both("huge_pages", "on")));
        assert_eq!(parse("port='5433'"), Some(both("port", "5433")));
        assert_eq!(parse("include_dir = 'it''s \\'here'"), Some(both("include_dir", "it's 'here")));
        assert_eq!(parse("work_mem="), Some(both("work_mem", "")));
        for nothing in ["", "# port = 1", "=x", "'", "port = 'unclosed", "1 = 2"] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn secrets_are_not_kept() {
        assert_eq!(keep("primary_conninfo = 'password=hunter2'"), None);
        assert_eq!(keep("port = 5432 # hunter2"), Some("port = '5432'".to_owned()));
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
        fn a_setting_survives(value in "[ -~]{0,20}", at in 0..KEPT.len()) {
            let quoted = value.replace('\\', "\\\\").replace('\'', "''");
            let line = format!("{} = '{quoted}' # x", KEPT[at]);
            prop_assert_eq!(parse(&line), Some(both(KEPT[at], &value)));
        }
    }
}
