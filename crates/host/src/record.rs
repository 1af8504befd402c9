//! All that one moment's reading met: the content of a capture.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use untax_core::Reading::{self, Absent, Failed};
use untax_core::reading::Gap;

/// Files, links and listings by path; answers by key; gaps by path.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Paths that could not be read, with the reason.
    pub gaps: BTreeMap<String, Gap>,
    /// What was observed other than through files, as JSON of a `Reading`.
    pub answers: BTreeMap<String, serde_json::Value>,
    /// Contents and link targets; saved as real files and links, not here.
    #[serde(skip)]
    pub(crate) entries: BTreeMap<String, (Kind, String)>,
    /// Directories that were listed; saved as directories.
    #[serde(skip)]
    pub(crate) directories: Vec<String>,
}

/// What a path was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
}

impl Record {
    pub(crate) fn read(&mut self, path: &str, kind: Kind, reading: &Reading<String>) {
        match reading.clone().into_result() {
            Ok(text) => {
                self.entries.insert(path.to_owned(), (kind, text));
            }
            Err(gap) => {
                self.gaps.insert(path.to_owned(), gap);
            }
        }
    }

    pub(crate) fn listed(&mut self, path: &str, names: Reading<&[String]>) {
        match names.into_result() {
            // The listing itself is rebuilt from what is below it: an entry that was listed but
            // never read matters to nobody, except where it is a directory of its own.
            Ok(_) => self.directories.push(path.to_owned()),
            Err(gap) => {
                self.gaps.insert(path.to_owned(), gap);
            }
        }
    }

    pub(crate) fn answered<T: Serialize>(&mut self, key: &str, answer: &Reading<T>) {
        let json = serde_json::to_value(answer)
            .unwrap_or_else(|e| serde_json::json!({ "failed": e.to_string() }));
        self.answers.insert(key.to_owned(), json);
    }

    pub(crate) fn answer<T: DeserializeOwned>(&self, key: &str) -> Reading<T> {
        match self.answers.get(key) {
            Some(json) => serde_json::from_value(json.clone())
                .unwrap_or_else(|e| Failed(format!("{key} in the capture: {e}"))),
            None => Absent(format!("{key} is not in the capture")),
        }
    }

    pub(crate) fn gap(&self, path: &str) -> Option<Gap> {
        self.gaps.get(path).cloned()
    }
}
