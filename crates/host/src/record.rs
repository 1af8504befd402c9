//! All that one moment's reading met: the content of a capture.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use untax_core::Reading::{self, Failed, Present};
use untax_core::reading::Gap;

/// Files, links and listings by path; answers by key; gaps by path.
///
/// The first reading of a path or key counts: one moment has one value of everything, and a
/// replay sees what the recorded check saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Paths that could not be read, with the reason.
    pub gaps: BTreeMap<String, Gap>,
    /// What was observed other than through files, as JSON of a `Reading`.
    pub answers: BTreeMap<String, serde_json::Value>,
    /// Where links point. Kept here and never made: a capture that is opened elsewhere holds no
    /// link that could lead out of it.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// Contents; saved as real files, not here.
    #[serde(skip)]
    pub(crate) files: BTreeMap<String, String>,
    /// Directories that were listed; saved as directories.
    #[serde(skip)]
    pub(crate) directories: BTreeSet<String>,
}

/// What a path was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
}

impl Record {
    /// Adds a file: for hosts that are made up.
    #[must_use]
    pub fn with_file(mut self, path: &str, text: &str) -> Self {
        self.insert_reading(path, Kind::File, &Present(text.to_owned()));
        self
    }

    /// Adds a link: for hosts that are made up.
    #[must_use]
    pub fn with_link(mut self, path: &str, target: &str) -> Self {
        self.insert_reading(path, Kind::Link, &Present(target.to_owned()));
        self
    }

    /// Adds what something other than a file answered: for hosts that are made up.
    #[must_use]
    pub fn with_answer<T: Serialize>(mut self, key: &str, answer: &Reading<T>) -> Self {
        self.insert_answer(key, answer);
        self
    }

    pub(crate) fn insert_reading(&mut self, path: &str, kind: Kind, reading: &Reading<String>) {
        if climbs(path) {
            self.gaps.insert(path.to_owned(), climbing_gap(path));
            return;
        }
        match reading.as_ref().into_result() {
            Ok(text) => {
                let known = match kind {
                    Kind::File => &mut self.files,
                    Kind::Link => &mut self.links,
                };
                known.insert(path.to_owned(), text.clone());
            }
            Err(gap) => {
                self.gaps.insert(path.to_owned(), gap);
            }
        }
    }

    /// What is known of a path; `None` if it was never read.
    pub(crate) fn reading(&self, path: &str, kind: Kind) -> Option<Reading<String>> {
        let known = match kind {
            Kind::File => &self.files,
            Kind::Link => &self.links,
        };
        match known.get(path) {
            Some(text) => Some(Present(text.clone())),
            None => self.gaps.get(path).cloned().map(|gap| Err(gap).into()),
        }
    }

    pub(crate) fn insert_listing(&mut self, path: &str, names: Reading<&[String]>) {
        match names.into_result() {
            Ok(_) if climbs(path) => {
                self.gaps.insert(path.to_owned(), climbing_gap(path));
            }
            // The listing itself is rebuilt from what is below it: an entry that was listed but
            // never read matters to nobody, except where it is a directory of its own.
            Ok(_) => {
                self.directories.insert(path.to_owned());
            }
            Err(gap) => {
                self.gaps.insert(path.to_owned(), gap);
            }
        }
    }

    /// The names right below a directory that this record knows of. What exists but could not be
    /// read is among them, what was not there is not.
    pub(crate) fn names_below(&self, directory: &str) -> BTreeSet<String> {
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        let is_there = |gap: &Gap| !matches!(gap, Gap::Absent(_));
        let files = from(&self.files, &prefix).map(|(path, _)| path);
        let links = from(&self.links, &prefix).map(|(path, _)| path);
        let gaps = from(&self.gaps, &prefix).filter(|(_, gap)| is_there(gap)).map(|(path, _)| path);
        let listed = self.directories.range(prefix.clone()..);
        files
            .chain(links)
            .chain(gaps)
            .chain(listed.take_while(|path| path.starts_with(&prefix)))
            .filter_map(|path| path[prefix.len()..].split('/').next())
            .filter(|name| !name.is_empty() && !climbs(name))
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn insert_answer<T: Serialize>(&mut self, key: &str, answer: &Reading<T>) {
        let json = serde_json::to_value(answer)
            .unwrap_or_else(|e| serde_json::json!({ "failed": e.to_string() }));
        self.answers.insert(key.to_owned(), json);
    }

    /// What was answered to a key; `None` if it was never asked.
    pub(crate) fn answer<T: DeserializeOwned>(&self, key: &str) -> Option<Reading<T>> {
        let json = self.answers.get(key)?;
        Some(
            serde_json::from_value(json.clone())
                .unwrap_or_else(|e| Failed(format!("{key} in the capture: {e}"))),
        )
    }
}

/// Whether a path climbs: such a one could be written outside of a capture's folder.
pub(crate) fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Why a path that climbs is in no capture.
pub(crate) fn climbing_gap(path: &str) -> Gap {
    Gap::Failed(format!("{path} leaves the capture"))
}

fn from<'a, T>(
    map: &'a BTreeMap<String, T>,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a String, &'a T)> {
    map.range(prefix.to_owned()..).take_while(move |(path, _)| path.starts_with(prefix))
}
