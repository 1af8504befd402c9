//! Files of settings that include each other, as those of PostgreSQL, MySQL and MariaDB do.

use crate::database_view::DatabaseView;
use crate::settings::{Values, has_extension};
use untax_core::Reading::{self, Absent, Present};

/// How deep files may include each other, as in the servers themselves (`CONF_FILE_MAX_DEPTH`,
/// `MAX_ALLOWED_INCLUDES`).
const MOST_DEPTH: usize = 10;

/// The most files that are read of one server.
const MOST_FILES: usize = 64;

/// What a line of such a file says.
pub(crate) enum Statement {
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
    fn statements(&self, path: &str, text: &str) -> Vec<Statement>;
}

/// Reads the files of one server.
pub(crate) struct Files<'a, S> {
    view: &'a DatabaseView<'a>,
    syntax: S,
    values: Values,
    read: usize,
}

impl<'a, S: Syntax> Files<'a, S> {
    /// Of none yet.
    pub fn new(view: &'a DatabaseView<'a>, syntax: S) -> Self {
        Self { view, syntax, values: Values::default(), read: 0 }
    }

    /// What all of them say: the last one wins.
    pub fn into_values(self) -> Values {
        self.values
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
    pub fn note_gap<T>(&mut self, gap: Reading<T>) {
        self.values.note_gap(gap);
    }

    fn read_at(&mut self, path: &str, depth: usize) {
        if let gap @ Absent(_) = self.try_read(path, depth) {
            self.values.note_gap(gap);
        }
    }

    /// Reads one file; what stands in the way is remembered, unless the file does not exist.
    fn try_read(&mut self, path: &str, depth: usize) -> Reading<()> {
        self.read += 1;
        if depth > MOST_DEPTH || self.read > MOST_FILES {
            return Absent(format!("{path} was not read: too many files include each other"));
        }
        match self.view.host.filter_lines_inside(self.view.pid(), path, S::keep) {
            Present(text) => {
                self.values.from_files = true;
                for statement in self.syntax.statements(path, &text) {
                    self.apply(statement, depth + 1);
                }
                Present(())
            }
            gap @ Absent(_) => gap.map(|_| ()),
            gap => {
                self.values.note_gap(gap);
                Present(())
            }
        }
    }

    fn apply(&mut self, statement: Statement, depth: usize) {
        match statement {
            Statement::Setting(name, value) => {
                self.values.settings.insert(name, value);
            }
            Statement::Include(path) => self.read_at(&path, depth),
            Statement::IncludeIfExists(path) => {
                let _absent_is_fine = self.try_read(&path, depth);
            }
            Statement::IncludeDirectory(path) => {
                self.read_directory(path.trim_end_matches('/'), depth);
            }
        }
    }

    fn read_directory(&mut self, path: &str, depth: usize) {
        match self.view.host.names(&format!("/proc/{}/root{path}", self.view.pid())) {
            Present(names) => {
                for name in names.iter().filter(|name| has_extension(name, S::EXTENSION)) {
                    self.read_at(&format!("{path}/{name}"), depth);
                }
            }
            gap => self.values.note_gap(gap),
        }
    }
}
