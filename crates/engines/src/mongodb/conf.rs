//! `mongod.conf`: the part of YAML that such files use, `key: value` by indentation.

use std::collections::BTreeMap;

/// The settings that are read. No other is ever held.
pub const KEPT: &[&str] = &[
    "net.bindIp",
    "net.maxIncomingConnections",
    "net.port",
    "net.unixDomainSocket.pathPrefix",
    "replication.replSetName",
    "storage.dbPath",
    "storage.engine",
    "storage.wiredTiger.engineConfig.cacheSizeGB",
];

/// Indentation, key and value of one line; `None` for comments, lists, empty lines and garbage.
fn pair(line: &str) -> Option<(usize, &str, &str)> {
    let rest = line.trim_start_matches(' ');
    let (key, value) = rest.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if key.is_empty() || !key.chars().all(plain) {
        return None;
    }
    let value = value.split(" #").next()?.trim();
    let value = if value.starts_with('#') { "" } else { value };
    let inside = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = inside('"').or_else(|| inside('\'')).unwrap_or(value);
    Some((line.len() - rest.len(), key, value))
}

/// What a check keeps of a line: its key, so that the sections stay apart, and its value where a
/// setting of the list may end so.
pub fn keep(line: &str) -> Option<String> {
    let (indentation, key, value) = pair(line)?;
    let listed = KEPT.iter().any(|path| path.rsplit('.').next() == Some(key));
    let value = if listed { value } else { "" };
    Some(format!("{:indentation$}{key}: {value}", "").trim_end().to_owned())
}

/// The settings of the list that a file holds.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut above: Vec<(usize, &str)> = Vec::new();
    for (indentation, key, value) in text.lines().filter_map(pair) {
        above.retain(|(outer, _)| *outer < indentation);
        above.push((indentation, key));
        let path = above.iter().map(|(_, key)| *key).collect::<Vec<_>>().join(".");
        if !value.is_empty() && KEPT.contains(&path.as_str()) {
            values.insert(path, value.to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "\
# mongod.conf
storage:
  dbPath: \"/srv/mongo\"
  wiredTiger:
    engineConfig:
      cacheSizeGB: 4   # half
net:
  port: 27018
security:
  keyFile: /etc/hunter2
  port: 1
";

    fn kept(text: &str) -> String {
        text.lines().filter_map(keep).map(|line| line + "\n").collect()
    }

    #[test]
    fn settings_by_their_path() {
        let expected = [
            ("net.port", "27018"),
            ("storage.dbPath", "/srv/mongo"),
            ("storage.wiredTiger.engineConfig.cacheSizeGB", "4"),
        ];
        let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(parse(FILE), expected);
        assert!(!kept(FILE).contains("hunter2"));
    }

    #[test]
    fn a_section_that_is_left_out_lends_its_keys_to_no_other() {
        let file = "net:\n  ipv6: true\nsecurity:\n  port: 1\n";
        assert!(parse(&kept(file)).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_kept_reads_the_same_again(text in "(net|security|storage|x)?:?\n( {0,4}[a-zA-Z]{1,7}: ?[a-z#\"]{0,4}\n| +port: 1\n|\\PC*\n){0,8}") {
            prop_assert_eq!(parse(&kept(&text)), parse(&text));
        }
    }
}
