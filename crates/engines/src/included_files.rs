//! Files of settings that include each other, as those of PostgreSQL, MySQL and MariaDB do.

use crate::database_view::Scene;
use crate::settings::{Values, has_extension};
use untax_core::Reading::{self, Absent, Present};

/// How deep files may include each other, as in the servers themselves (`CONF_FILE_MAX_DEPTH`,
/// `MAX_ALLOWED_INCLUDES`).
const MOST_DEPTH: usize = 10;

/// The most files that are read of one server.
const MOST_FILES: usize = 64;

/// What a line of such a file says.
pub(crate) enum Said {
    /// A setting and its value.
    Setting(String, String),
    /// Another file is to be read here.
    Include(String),
    /// The same, if there is one.
    IncludeIfExists(String),
    /// All files of a directory are, whose names end as is usual.
    IncludeDirectory(String),
}

/// How an engine writes such files.
pub(crate) trait Syntax {
    /// What the names of files in a directory end with.
    const EXTENSION: &'static str;

    /// What may be kept of a line: nothing of one that may hold a secret.
    fn keep(line: &str) -> Option<String>;

    /// What a file says, line by line.
    fn said(&self, path: &str, text: &str) -> Vec<Said>;
}

/// Reads the files of one server.
pub(crate) struct Files<'a, S> {
    scene: &'a Scene<'a>,
    syntax: S,
    found: Values,
    read: usize,
}

impl<'a, S: Syntax> Files<'a, S> {
    /// Of none yet.
    pub fn new(scene: &'a Scene<'a>, syntax: S) -> Self {
        Self { scene, syntax, found: Values::default(), read: 0 }
    }

    /// What all of them say: the last one wins.
    pub fn found(self) -> Values {
        self.found
    }

    /// Reads a file, and what it includes; one that does not exist is missing.
    pub fn read(&mut self, path: &str) {
        self.read_at(path, 0);
    }

    /// The same of one that need not exist.
    pub fn read_if_exists(&mut self, path: &str) {
        let _absent_is_fine = self.try_read(path, 0);
    }

    /// Something that could not even be looked for.
    pub fn missing<T>(&mut self, gap: Reading<T>) {
        self.found.missing(gap);
    }

    fn read_at(&mut self, path: &str, depth: usize) {
        if let gap @ Absent(_) = self.try_read(path, depth) {
            self.found.missing(gap);
        }
    }

    /// Reads one file; what stands in the way is remembered, unless the file does not exist.
    fn try_read(&mut self, path: &str, depth: usize) -> Reading<()> {
        self.read += 1;
        if depth > MOST_DEPTH || self.read > MOST_FILES {
            return Absent(format!("{path} was not read: too many files include each other"));
        }
        match self.scene.host.kept_inside(self.scene.pid(), path, S::keep) {
            Present(text) => {
                self.found.from_files = true;
                for said in self.syntax.said(path, &text) {
                    self.apply(said, depth + 1);
                }
                Present(())
            }
            gap @ Absent(_) => gap.map(|_| ()),
            gap => {
                self.found.missing(gap);
                Present(())
            }
        }
    }

    fn apply(&mut self, said: Said, depth: usize) {
        match said {
            Said::Setting(name, value) => {
                self.found.settings.insert(name, value);
            }
            Said::Include(path) => self.read_at(&path, depth),
            Said::IncludeIfExists(path) => {
                let _absent_is_fine = self.try_read(&path, depth);
            }
            Said::IncludeDirectory(path) => self.read_directory(path.trim_end_matches('/'), depth),
        }
    }

    fn read_directory(&mut self, path: &str, depth: usize) {
        match self.scene.host.names(&format!("/proc/{}/root{path}", self.scene.pid())) {
            Present(names) => {
                for name in names.iter().filter(|name| has_extension(name, S::EXTENSION)) {
                    self.read_at(&format!("{path}/{name}"), depth);
                }
            }
            gap => self.found.missing(gap),
        }
    }
}
