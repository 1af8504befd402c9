//! What a workload is, and what its commands are made of.

use untax_core::{Bytes, Database};

/// The database that workloads make for their tables, and drop when they end. One that a killed
/// verification left is dropped by the next.
pub(super) const SCRATCH: &str = "untax_verify";

/// A workload that is known by name.
pub struct Workload {
    /// Its name: that of its program, and of its file here.
    pub id: &'static str,
    /// The engine that it is for.
    pub engine: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// Its commands for one server.
    pub commands: fn(&Database, &Load) -> Commands,
}

/// How much a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Connections.
    pub clients: u32,
    /// Length of a trial, seconds.
    pub seconds: u32,
    /// Data that it works on, where it makes any.
    pub data: Bytes,
    /// The OS user to become, so that the server knows its own; `None` to stay who one is.
    pub become_uid: Option<u32>,
}

/// Shell commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// Before the first trial; empty when nothing is to be made.
    pub prepare: String,
    /// One trial.
    pub run: String,
    /// After the last; empty when nothing was made.
    pub clean: String,
}

/// A word for a shell, whatever is in it.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A setting of a server that is not empty.
pub(super) fn setting(database: &Database, name: &str) -> Option<String> {
    database.setting(name).into_value().filter(|value| !value.is_empty())
}

/// Words that make a command another user's.
pub(super) fn as_user(load: &Load) -> String {
    load.become_uid
        .map(|uid| format!("setpriv --reuid={uid} --clear-groups -- "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
