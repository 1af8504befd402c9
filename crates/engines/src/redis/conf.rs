//! `redis.conf`, `valkey.conf`, and options on the command line.

/// The settings that are read, from files and from the server. No other is ever held.
pub const KEPT: &[&str] = &[
    "activedefrag",
    "appendfsync",
    "appendonly",
    "bind",
    "disable-thp",
    "io-threads",
    "io-threads-do-reads",
    "lazyfree-lazy-eviction",
    "maxclients",
    "maxmemory",
    "maxmemory-policy",
    "port",
    "repl-diskless-sync",
    "save",
    "unixsocket",
];

/// One directive: its name in lower case, and its arguments with single spaces between them.
/// `None` for comments, empty lines and garbage.
pub fn parse(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let words = value.split([' ', '\t']).filter(|word| !word.is_empty()).map(unquote);
    Some((name.to_ascii_lowercase(), words.collect::<Vec<_>>().join(" ")))
}

fn unquote(word: &str) -> &str {
    let inside = |quote| word.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(word)
}

/// What a check keeps of a line: directives of the list, and includes.
pub fn keep(line: &str) -> Option<String> {
    let (name, value) = parse(line)?;
    let kept = KEPT.contains(&name.as_str()) || name == "include";
    // Quotes inside quotes would be taken off when the line is read again.
    (kept && !value.contains(['"', '\''])).then(|| format!("{name} {value}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn both(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn directives() {
        assert_eq!(parse("maxmemory 4gb"), Some(both("maxmemory", "4gb")));
        assert_eq!(parse("save 900 1  300 10"), Some(both("save", "900 1 300 10")));
        assert_eq!(parse("save \"\""), Some(both("save", "")));
        assert_eq!(parse("Disable-THP yes"), Some(both("disable-thp", "yes")));
        for nothing in ["", "# port 1", "\"port\" 1", "é 1"] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn secrets_are_not_kept() {
        assert_eq!(keep("requirepass hunter2"), None);
        assert_eq!(keep("user default on >hunter2 ~* +@all"), None);
        assert_eq!(keep("port 6379"), Some("port 6379".to_owned()));
    }

    proptest! {
        #[test]
        fn what_is_kept_reads_the_same_again(line in "(port|save|bind|x|include)? \\PC*") {
            if let Some(kept) = keep(&line) {
                prop_assert_eq!(parse(&kept), parse(&line));
                prop_assert_eq!(keep(&kept), Some(kept));
            }
        }
    }
}
